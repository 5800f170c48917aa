"""The memory of SparQ with memory: what it believes, and what it asks."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from functools import cache
from math import log, sqrt
from typing import TYPE_CHECKING

from sparq_sim.arrays import Point, Points
from sparq_sim.gp.predictor import Predictor
from sparq_sim.messages import REWARD, Answer, Failure, Notes, Query
from sparq_sim.optimizers.shared.memory import Memory
from sparq_sim.optimizers.shared.prior import GPPrior
from sparq_sim.optimizers.sparq_memory.asking import Asking
from sparq_sim.optimizers.sparq_memory.bank import Bank
from sparq_sim.optimizers.sparq_memory.carried import Currents
from sparq_sim.optimizers.sparq_memory.features import SpatialFeatures
from sparq_sim.optimizers.sparq_memory.filtering import Filter, Measured
from sparq_sim.optimizers.sparq_memory.members import DRIFTS, MEMBERS, SENTINEL
from sparq_sim.optimizers.sparq_memory.outlook import Hope, Outlook, Places
from sparq_sim.optimizers.sparq_memory.trust import Audits
from sparq_sim.plugin.briefing import Briefing

if TYPE_CHECKING:
    from sparq_sim.optimizers.sparq_memory.optimizer import SparQMemory

__all__ = ["DriftMemory", "ExpertWarning"]

_SHOCK = 8.0
"""The mean squared residual, over some five values, beyond which what was learnt is forgotten."""
_SURPRISE = 0.1
"""The weight of the newest observation in the mean squared residual."""
_TIME_SCALES = (3, 10, 30, 100, 1000)
"""The time scales, in rounds, whose shares are noted; those in between count to the nearest."""


class ExpertWarning(UserWarning):
    """A warning that the answers of an expert are not what they claim."""


class DriftMemory(Memory):
    """A bank of hypotheses, fed with values at the moment of their measurement.

    Args:
        model: The optimizer.
        prior: What is believed before any observation.
        briefing: The domain, the terms of all sources, and the rules of the play.
    """

    def __init__(self, model: SparQMemory, prior: GPPrior, briefing: Briefing) -> None:
        super().__init__(prior, briefing.period)
        self.waits = model.waits
        features = SpatialFeatures(prior.kernel, prior.candidates)
        self._places = Places(features, prior.candidates)
        currents = Currents.of(features)
        self._filter = Filter(Bank([each.start(features, currents) for each in MEMBERS], SENTINEL))
        self._asking = Asking(model, briefing, self._places, prior)
        self._audits = Audits()
        self._told: list[Measured] = []
        self._moment = 0.0
        self._surprise = self._shock = 1.0
        self._doubted: set[str] = set()
        if briefing.design is not None:
            self.learn(briefing.design)

    @property
    def size(self) -> int:
        return self._places.features.rank

    def learn(self, answer: Answer) -> None:
        source, time = answer.query.source, answer.measured_at / self.period
        features, left = self._places.find(answer.points)
        claims = self.prior.variances(answer)
        trust = None if source == REWARD else self._asking.offers.trust[source]
        if trust is None:
            self._asking.awaiting.record_observation(time)
        else:
            self._asking.awaiting.record_answer(answer.query, len(answer.rows))
        for row, (value, claimed) in enumerate(
            zip(answer.values.tolist(), claims.tolist(), strict=True)
        ):
            point, believed = answer.points[row].tobytes(), claimed
            if trust is None:
                self._audits.observe(point, time, value, claimed)
            else:
                self._audits.answer(trust, point, time, value, claimed)
                believed = trust.variance(claimed)
            self._told.append(
                Measured(
                    time, source, features[row], value - self.prior.mean, believed + left.item(row)
                )
            )

    def record_failure(self, failure: Failure) -> None:
        self._asking.awaiting.record_failure(failure.query, len(failure.rows))

    def _doubt(self, name: str, std: float) -> None:
        """Forget what was learnt, because an expert has misled it, and say so."""
        self._doubted.add(name)
        self._filter.restart()
        self._told = [each for each in self._told if each.source != name]
        warnings.warn(
            f"the answers of expert {name!r} are less exact than they claim, or the observations "
            f"are: they differ by about {std:.2g} at the same points and moments. What was learnt "
            "is forgotten, and further answers count as that inexact",
            ExpertWarning,
            stacklevel=2,
        )

    def _take_in(self) -> None:
        """Learn what was told since the last decision."""
        for name, trust in self._asking.offers.trust.items():
            if not trust.doubted:
                self._doubted.discard(name)
            elif name not in self._doubted:
                self._doubt(name, sqrt(trust.variance(0.0)))
        told, self._told = self._told, []
        for residual in self._filter.learn(told):
            square = residual.miss**2 / (residual.variance + residual.measured.variance)
            self._shock += 0.2 * (min(square, 25.0) - self._shock)
            if residual.measured.source == REWARD:
                self._surprise += _SURPRISE * (square - self._surprise)
        if self._shock > _SHOCK:
            self._filter.restart()
            self._shock = 1.0

    def predictor(self, now: float) -> Predictor:
        self._take_in()
        self._moment = moment = now / self.period
        self._filter.settle(self._asking.awaiting.find_oldest(moment))
        self._filter.bank.advance(moment)
        foresight = self._filter.bank.foresee(measured=moment, used=moment)
        return Outlook(foresight, self._places, self.prior.mean)

    def hopes(self, predictor: Predictor) -> Predictor:
        if isinstance(predictor, Outlook) and self._asking.coverage is not None:
            return Hope(
                predictor,
                self._asking.coverage,
                new=self._asking.find_worth_of_new(self._moment),
                asked=self._asking.hoped,
            )
        return predictor

    def record_play(self, point: Point, now: float) -> None:
        self._asking.record_play(point, now / self.period)

    def choose_points_to_ask(self, now: float) -> Mapping[str, Points]:
        self._take_in()
        return self._asking.choose(self._filter.bank, now)

    def record_queries(self, queries: tuple[Query, ...]) -> None:
        self._asking.awaiting.record_queries(queries)

    def notes(self) -> Notes:
        drifts = dict.fromkeys(DRIFTS, 0.0)
        scales = dict.fromkeys(_TIME_SCALES, 0.0)
        for member, weight in zip(MEMBERS, self._filter.bank.weights.tolist(), strict=True):
            drifts[member.drift] += weight
            scales[_round_scale(member.time_scale)] += weight
        return {
            "queries": float(self._asking.asked),
            **{f"time_scale/{scale}": weight for scale, weight in scales.items()},
            **{f"drift/{drift}": weight for drift, weight in drifts.items()},
            "surprise": self._surprise,
            "restarts": float(self._filter.bank.restarts),
            "doubted": float(len(self._doubted)),
        }


@cache
def _round_scale(time_scale: float) -> int:
    """Return which of the noted time scales is nearest."""
    return min(_TIME_SCALES, key=lambda scale: abs(log(scale / time_scale)))
