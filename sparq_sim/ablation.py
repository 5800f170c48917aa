"""Ablation: the plays of a study once more, without an expert."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from hashlib import blake2b
from urllib.parse import quote

from sparq_sim import store
from sparq_sim.errors import ScenarioError, did_you_mean
from sparq_sim.holdings import replaced
from sparq_sim.scenario import Scenario
from sparq_sim.store import Found, StoreError, Values
from sparq_sim.study import Label, Study, label


def without(study: Study, expert: str, *, allow_import: bool = False) -> Study:
    """Return the study of the same plays without an *expert*, to be run.

    Its folder is `without-EXPERT` in that of the *study*, so that plays are found again. Streams
    of chance go by names: what is left meets the same chance as with the expert.

    Args:
        study: One with finished plays. Of several seeds, that of most plays is played again.
        expert: Its name.
        allow_import: Whether plays may name code to import, `module:Class`.

    Returns:
        A study whose `notes` say which optimizers were left out since they need the expert, and
        whether the code has changed since the plays with the expert.

    Raises:
        StoreError: No play has such an expert, or no optimizer can do without it.
    """
    rows = _rows(study)
    scenarios = _scenarios(study, rows, allow_import=allow_import)
    known = {name for scenario in scenarios for name in scenario.experts}
    if expert not in known:
        raise StoreError(f"no expert is called {expert!r}: {did_you_mean(expert, known)}")
    settings: list[tuple[Values, Scenario]] = []
    refused: dict[str, None] = {}
    for (play, *_), scenario in zip(rows, scenarios, strict=True):
        try:
            settings.append((play.setting, scenario.without(expert, optimizer=play.optimizer)))
        except ScenarioError as error:
            refused[str(error)] = None
    told = "; ".join(refused)
    if not settings:
        raise StoreError(f"no optimizer can play without the expert {expert!r}: {told}")
    name = f"{rows[0][0].scenario} without {expert}"
    made = Study.of(
        settings,
        study.folder / f"without-{quote(expert, safe='')}",
        identity=blake2b(name.encode(), digest_size=6).hexdigest(),
        title=f"{study.title} without {expert}".strip(),
    )
    if refused:
        made.store.notes.append(f"not played without the expert {expert!r}: {told}")
    if why := _outdated(study, rows, scenarios):
        made.store.notes.append(
            f"the plays in {study.folder} are by other code than those without {expert!r} "
            f"({why}); run the study again to compare like with like"
        )
    return made


def _rows(study: Study) -> list[list[Found]]:
    """Sort finished plays by optimizer and setting; of several seeds, those of most plays."""
    found = study.found()
    if not found:
        raise StoreError(f"there is no finished play in {study.folder}")
    ((seed, _),) = Counter(each.seed for each in found).most_common(1)
    rows: dict[Label, list[Found]] = {}
    for each in found:
        if each.seed == seed:
            rows.setdefault(label(each), []).append(each)
    return list(rows.values())


def _scenarios(
    study: Study, rows: Sequence[Sequence[Found]], *, allow_import: bool
) -> list[Scenario]:
    """Return the scenario of each row of plays: the study's own, or made again from a play."""
    own, made = study.scenarios, []
    for plays in rows:
        scenario = own.get(label(plays[0])) or Scenario.from_fingerprint(
            study.store.provenance(plays[0].key)["play"],
            seed=plays[0].seed,
            name=plays[0].optimizer,
            allow_import=allow_import,
        )
        count = 1 + max(play.replication for play in plays)
        made.append(scenario.model_copy(update={"replications": count, "record": "rounds"}))
    return made


def _outdated(study: Study, rows: Sequence[Sequence[Found]], scenarios: Sequence[Scenario]) -> str:
    """Explain what has changed in the code since plays were finished, if anything has."""
    for (play, *_), scenario in zip(rows, scenarios, strict=True):
        used = store.plugins_used(scenario, play.optimizer)
        family = store.family(play.optimizer, scenario.fingerprint(play.optimizer), used)
        if family != play.family:
            told = study.store.provenance(play.key)
            return replaced(told, scenario, play.optimizer) or "their fields are others now"
    return ""
