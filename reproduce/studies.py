"""The studies behind the documentation: what is listed, played, and written down as numbers."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from os.path import expandvars
from pathlib import Path
from shlex import quote
from typing import Any, TypeAlias

from threadpoolctl import threadpool_limits

from reproduce import DOCS
from sparq_sim import Scenario
from sparq_sim.analysis import levels
from sparq_sim.analysis.summary import Spread, spread, summary
from sparq_sim.errors import SparqError
from sparq_sim.study.executors import Processes
from sparq_sim.study.store import StoredSummary, canonical, write_whole
from sparq_sim.study.study import Study

Row: TypeAlias = Mapping[str, Any]
Numbers: TypeAlias = Mapping[str, Any]

RESULTS = DOCS / "results"
PLAYS = Path("studies/docs")
"""Where plays are kept, from the root of the repository."""
LEVELS = ("uniform", "fixed", "late")


@dataclass(frozen=True)
class Listed:
    """A study that studies.toml lists; the fields are explained there."""

    name: str
    scenario: str
    columns: Sequence[str]
    overrides: Sequence[str] = ()
    needs: Sequence[str] = ()
    baseline: str | None = None
    sample: int = 2
    figures: Sequence[Mapping[str, Any]] = ()

    @property
    def command(self) -> str:
        """What plays it."""
        # In double quotes where possible, so that a shell puts in variables.
        quoted = [quote(each) if '"' in each else f'"{each}"' for each in self.overrides]
        settings = "".join(f" --set {each}" for each in quoted)
        return f"sparq-sim run {self.scenario}{settings}"

    def load(self, *more: str) -> Scenario:
        """Load its scenario, with *more* overrides."""
        return Scenario.load(self.scenario, overrides=[*map(expandvars, self.overrides), *more])

    @property
    def missing(self) -> list[str]:
        """The files it needs that are not there."""
        return [file for file in self.needs if not Path(expandvars(file)).is_file()]


def read_list() -> dict[str, Listed]:
    """Read the list of studies."""
    table = tomllib.loads((RESULTS / "studies.toml").read_text(encoding="utf-8"))
    return {name: Listed(name=name, **fields) for name, fields in table.items()}


def play_study(one: Listed, folder: Path, jobs: int | None) -> Study:
    """Play what is missing of a study, and write what it comes to."""
    study = Study(scenario := one.load(), folder)
    report = study.run(Processes(jobs))
    if report.failed_plays:
        raise SparqError(f"{one.name}: {report.failed_plays[0].reason}")
    told = {
        "scenario": one.scenario,
        "overrides": list(one.overrides),
        "rounds": scenario.rules.most_rounds,
        "replications": scenario.replications,
        "levels": compute_levels(scenario),
        "rows": summarise(study, one.baseline),
    }
    write(one.name, told)
    return study


def read_results(name: str) -> Numbers:
    """Read what docs/results has under a name."""
    path = RESULTS / f"{name}.json"
    if not path.is_file():
        raise SparqError(f"{path} is not there; run: python -m reproduce {name}")
    found: Numbers = json.loads(path.read_text(encoding="utf-8"))
    return found


def write(name: str, told: Numbers) -> None:
    """Write results as JSON, lists of numbers each on a line."""
    text = json.dumps(_short(told), indent=1, ensure_ascii=False)
    text = re.sub(r"\[[-\d\s.,e+]+\]", lambda found: " ".join(found[0].split()), text)
    write_whole(RESULTS / f"{name}.json", f"{text}\n".encode())


def _short(thing: Any) -> Any:
    """Keep six digits of numbers: more would differ from machine to machine."""
    match thing:
        case float():
            return float(f"{thing:.6g}")
        case dict():
            return {name: _short(value) for name, value in thing.items()}
        case list():
            return [_short(value) for value in thing]
    return thing


def compute_levels(scenario: Scenario) -> list[dict[str, Any]]:
    """Compute the reference levels, means over replications, in each world that is swept."""
    with threadpool_limits(limits=1):
        found = levels.compute_levels(scenario, whole=True)
    return [
        {"setting": setting}
        | {name: getattr(level, name) for name in LEVELS}
        | {f"{name}_std": getattr(level, f"{name}_std") for name in LEVELS}
        | {"worlds": level.worlds}
        for setting, level in found
    ]


def summarise(study: Study, baseline: str | None) -> list[dict[str, Any]]:
    """Return one row per optimizer and setting.

    It has what `sparq-sim compare --json` has, the average regret of each replication, and the
    differences from the *baseline*.
    """
    groups: dict[tuple[str, str], list[StoredSummary]] = {}
    for play in sorted(study.results.finished(), key=lambda play: play.replication):
        groups.setdefault(play.label, []).append(play)
    made = []
    for each in summary(study.results):
        row = {name: value for name, value in each.flat().items() if name not in each.setting}
        del row["wall"]  # No two runs agree on it.
        row["setting"] = dict(each.setting)
        own = groups[each.optimizer, canonical(each.setting)]
        row["average_regrets"] = [_regret(play) for play in own]
        if baseline not in (None, each.optimizer):
            (other,) = (
                group
                for group in groups.values()
                if group[0].optimizer == baseline and _agree(group[0].setting, each.setting)
            )
            row |= _compare(own, other)
        made.append(row)
    return made


def shorten_paths(setting: Mapping[str, object]) -> dict[str, object]:
    """Call swept values by the last words of their paths."""
    return {path.rpartition(".")[2]: value for path, value in setting.items()}


def _agree(one: Mapping[str, object], other: Mapping[str, object]) -> bool:
    first, second = shorten_paths(one), shorten_paths(other)
    return all(first[word] == second[word] for word in first.keys() & second.keys())


def _regret(play: StoredSummary) -> float:
    return play.measures["average_regret"] or 0.0


def _compare(
    own: Sequence[StoredSummary], other: Sequence[StoredSummary]
) -> dict[str, float | None]:
    """Compare plays with those of the baseline in the same replication."""
    theirs = {play.replication: _regret(play) for play in other}
    gaps = [_regret(play) - theirs[play.replication] for play in own]
    asked = sum(play.measures["asked"] or 0.0 for play in own)
    asked /= sum(play.measures["rounds"] or 0.0 for play in own)
    told = _flat("minus", spread(gaps))
    # Over the mean of what is asked, so that totals are equal at this price.
    return told | (_flat("break_even", spread(-gap / asked for gap in gaps)) if asked else {})


def _flat(name: str, found: Spread) -> dict[str, float | None]:
    numbers = {name: found.mean} | {
        f"{name}_{n}": getattr(found, n) for n in ("std", "low", "high")
    }
    return {name: number if isfinite(number) else None for name, number in numbers.items()}
