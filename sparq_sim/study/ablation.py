"""Ablation: the plays of a study once more, without an expert."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from hashlib import blake2b
from urllib.parse import quote

from sparq_sim.errors import PluginError, ScenarioError, did_you_mean
from sparq_sim.scenario.model import Scenario
from sparq_sim.study.differences import explain_replacement
from sparq_sim.study.results import Results
from sparq_sim.study.settings import format_setting
from sparq_sim.study.store import Label, Setting, StoredSummary, StoreError
from sparq_sim.study.store.errors import explain_no_play
from sparq_sim.study.store.keys import list_plugins, name_family
from sparq_sim.study.study import Study

__all__ = ["plan_without"]


def plan_without(study: Study | Results, expert: str, *, allow_import: bool = False) -> Study:
    """Return the study of the same plays without an *expert*, to be run.

    Its folder is `without-EXPERT` in that of the *study*, so that plays are found again. Streams
    of chance go by names: what is left meets the same chance as with the expert. But an agent
    has one stream, for what it asks and for how it breaks ties: where it would have asked the
    expert, it goes on with other draws without it. So even an expert that never answered may
    change its regret.

    Args:
        study: One with finished plays. Of several seeds, that of most plays is played again.
        expert: Its name.
        allow_import: Whether plays may name code to import, `module:Class`.

    Returns:
        A study whose `notes` say which optimizers were left out since they need the expert, how
        many plays of other seeds were, and whether the code has changed since the plays with the
        expert.

    Raises:
        StoreError: No play has such an expert, or no optimizer or another expert can do without it.
    """
    own = study.scenarios if isinstance(study, Study) else {}
    results = study.results if isinstance(study, Study) else study
    rows, others = _rows(results)
    scenarios = _scenarios(results, rows, own, allow_import=allow_import)
    known = {name for scenario in scenarios for name in scenario.experts}
    if expert not in known:
        raise StoreError(f"no expert is called {expert!r}: {did_you_mean(expert, known)}")
    settings: list[tuple[Setting, Scenario]] = []
    refused: dict[str, list[StoredSummary]] = {}
    for (play, *_), scenario in zip(rows, scenarios, strict=True):
        if needed := _needed(scenario, expert):
            refused.setdefault(needed, []).append(play)
            continue
        try:
            settings.append((play.setting, scenario.without(expert, optimizer=play.optimizer)))
        except ScenarioError as error:
            refused.setdefault(str(error), []).append(play)
    playing = {name for _, scenario in settings for name in scenario.optimizers}
    told = "; ".join(_where(why, plays, playing) for why, plays in refused.items())
    if not settings:
        raise StoreError(f"no optimizer can play without the expert {expert!r}: {told}")
    name = f"{rows[0][0].play.scenario} without {expert}"
    made = Study.of(
        settings,
        study.folder / f"without-{quote(expert, safe='')}",
        identity=blake2b(name.encode(), digest_size=6).hexdigest(),
        title=f"{study.title} without {expert}".strip(),
    )
    if refused:
        made.notes.append(f"not played without the expert {expert!r}: {told}")
    if others:
        made.notes.append(
            f"{others} finished plays of other seeds are left out: without the expert {expert!r}, "
            f"seed {rows[0][0].seed} alone is played, of which there are most"
        )
    if why := _outdated(results, rows, scenarios):
        made.notes.append(
            f"the plays in {study.folder} are by other code than those without {expert!r} "
            f"({why}); run the study again to compare like with like"
        )
    return made


def _needed(scenario: Scenario, expert: str) -> str:
    """Explain which other experts of a *scenario* cannot do without one, if any."""
    told, left = [], scenario.experts.keys() - {expert}
    for name in scenario.experts:
        if name == expert:
            continue
        engaged = scenario.experts[name]
        try:
            engaged.expert.check_experts(left)
        except PluginError:
            told.append(f"{name!r} asks {expert!r}")
        if engaged.channel.policy.fallback == expert:
            told.append(f"{name!r} falls back on {expert!r}")
    return ", ".join(told)


def _where(why: str, plays: Sequence[StoredSummary], playing: Collection[str]) -> str:
    """Add to a reason the settings that it is about, where their optimizer plays in others."""
    some = [
        format_setting(play.setting) for play in plays if play.optimizer in playing and play.setting
    ]
    return f"{why} (where {'; '.join(some)})" if some else why


def _rows(results: Results) -> tuple[list[list[StoredSummary]], int]:
    """Sort finished plays by optimizer and setting; of several seeds, those of most plays.

    Returns:
        The rows, and how many plays of other seeds there are.
    """
    found = results.finished()
    if not found:
        raise StoreError(explain_no_play(results.folder, results.notes))
    ((seed, _),) = Counter(each.seed for each in found).most_common(1)
    rows: dict[Label, list[StoredSummary]] = {}
    for each in found:
        if each.seed == seed:
            rows.setdefault(each.label, []).append(each)
    return list(rows.values()), sum(each.seed != seed for each in found)


def _scenarios(
    results: Results,
    rows: Sequence[Sequence[StoredSummary]],
    own: Mapping[Label, Scenario],
    *,
    allow_import: bool,
) -> list[Scenario]:
    """Return the scenario of each row of plays: the study's own, or made again from a play."""
    made = []
    for plays in rows:
        scenario = own.get(plays[0].label) or Scenario.from_fingerprint(
            results.provenance(plays[0].play).fingerprint,
            seed=plays[0].seed,
            name=plays[0].optimizer,
            allow_import=allow_import,
        )
        count = 1 + max(play.replication for play in plays)
        made.append(scenario.model_copy(update={"replications": count, "record": "rounds"}))
    return made


def _outdated(
    results: Results, rows: Sequence[Sequence[StoredSummary]], scenarios: Sequence[Scenario]
) -> str:
    """Explain what has changed in the code since plays were finished, if anything has."""
    for (play, *_), scenario in zip(rows, scenarios, strict=True):
        used = list_plugins(scenario, play.optimizer)
        family = name_family(play.optimizer, scenario.fingerprint(play.optimizer), used)
        if family != play.play.family:
            told = results.provenance(play.play)
            return (
                explain_replacement(told, scenario, play.optimizer) or "their fields are others now"
            )
    return ""
