"""The header of a journal, made of what is played."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any
from uuid import uuid4

import sparq_sim
from sparq_sim.domain import Domain
from sparq_sim.journal.entries import Header, SourceTraits
from sparq_sim.messages import REWARD
from sparq_sim.plugin.environment import Environment
from sparq_sim.plugin.expert import Expert
from sparq_sim.simulation.play import Played

__all__ = ["make_header"]


def make_header(
    played: Played,
    domain: Domain,
    *,
    seconds: float | None = None,
    scenario: Mapping[str, Any] | None = None,
    title: str = "",
) -> Header:
    """Return the header of a play that is about to begin, with an identity of its own.

    Args:
        played: What is played.
        domain: Where points may lie.
        seconds: How long a clock unit lasts, in seconds; None in virtual time.
        scenario: What fixes the play, as `Scenario.fingerprint` gives it; by default unknown.
        title: What the play is called.
    """
    experts = {
        name: each[0] if isinstance(each, tuple) else each for name, each in played.experts.items()
    }
    sources: dict[str, Environment | Expert] = {REWARD: played.environment, **experts}
    return Header(
        play=uuid4().hex,
        unix=time.time(),
        seconds=seconds,
        optimizer=played.optimizer_name,
        seed=played.seed,
        replication=played.replication,
        period=played.rules.period,
        rounds=played.rules.most_rounds,
        domain=domain,
        scenario=dict(scenario or {}),
        title=title,
        sources={
            name: SourceTraits(real=source.is_real, idempotent=source.honours_keys())
            for name, source in sources.items()
        },
        versions={
            "sparq_sim": sparq_sim.__version__,
            "python": ".".join(map(str, sys.version_info[:3])),
            "numpy": version("numpy"),
        },
    )
