"""Provenance: what a play was, how it ended, and with what it was computed."""

from __future__ import annotations

import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from math import isfinite, nan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from threadpoolctl import threadpool_info

import sparq_sim
from sparq_sim.plugin.sources import hash_core
from sparq_sim.simulation import measures
from sparq_sim.simulation.records import Fate
from sparq_sim.simulation.trace import WALL, Trace
from sparq_sim.study.store.keys import (
    FORMAT,
    PlayId,
    Setting,
    canonical,
    list_plugins,
    name_family,
    name_play,
)
from sparq_sim.study.store.summary import StoredSummary

if TYPE_CHECKING:
    from sparq_sim.scenario.model import Scenario

__all__ = [
    "Contents",
    "Machine",
    "Provenance",
    "describe_play",
]


@dataclass(frozen=True, slots=True)
class Contents:
    """What is needed to make a trace of its tables."""

    digest: str
    """Of the whole trace."""
    rounds_digest: str
    """Of the trace without its replies."""
    ended: str
    """Why the play ended."""
    spent: float
    """In all."""
    coordinates: Sequence[str]
    """The names of the columns of a point."""
    columns: Mapping[str, Sequence[str]]
    """The names of the columns, by table."""
    checksums: Mapping[str, str] = field(default_factory=dict)
    """Of each table that was written; none in files of early versions."""
    format: int = FORMAT
    """The number of the format that the file is of."""

    @classmethod
    def of_trace(cls, trace: Trace) -> Contents:
        """Return what is needed to make a trace again.

        Args:
            trace: The trace to be stored.
        """
        rounds_digest, digest = trace.digests()
        return cls(
            digest=digest,
            rounds_digest=rounds_digest,
            ended=trace.ended,
            spent=trace.spent,
            coordinates=list(trace.coordinates),
            columns={
                "rounds": list(trace.rounds),
                "replies": list(trace.replies),
                **({"accounts": ["table", "content"]} if trace.accounts else {}),
            },
            format=FORMAT,
        )

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Contents:
        """Return what a provenance says.

        Args:
            data: The provenance as it is in the file.

        Raises:
            KeyError: Something is missing.
        """
        return cls(
            digest=data["digest"],
            rounds_digest=data["rounds_digest"],
            ended=data["ended"],
            spent=data["spent"],
            coordinates=data["coordinates"],
            columns=data["columns"],
            checksums=data.get("checksums", {}),
            format=data["format"],
        )

    def to_json(self) -> dict[str, Any]:
        """Return the contents as a provenance holds them, with the number of the format."""
        return {
            "format": self.format,
            "digest": self.digest,
            "rounds_digest": self.rounds_digest,
            "ended": self.ended,
            "spent": self.spent,
            "coordinates": list(self.coordinates),
            "columns": {name: list(columns) for name, columns in self.columns.items()},
            "checksums": dict(self.checksums),
        }


@dataclass(frozen=True, slots=True)
class Machine:
    """With what plays are computed: code, libraries and hardware."""

    core: str | None
    """Hashes the source of what plays in sparq-sim; None in files of early versions."""
    versions: Mapping[str, str]
    """By package, sparq-sim and Python included."""
    blas: Sequence[Mapping[str, Any]]
    """The libraries of linear algebra, with their versions and architectures."""
    cpu: str | None
    """The name of the processor; None where a file does not say."""
    platform: str | None
    """The operating system; None where a file does not say."""

    @classmethod
    def here(cls) -> Machine:
        """Return with what plays are computed in this process."""
        return replace(_machine(), core=hash_core())

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Machine:
        """Return what a provenance says.

        Args:
            data: The provenance as it is in the file.
        """
        return cls(
            core=data.get("core"),
            versions=data.get("versions", {}),
            blas=data.get("blas", ()),
            cpu=data.get("cpu"),
            platform=data.get("platform"),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the machine as a provenance holds it."""
        return {
            "core": self.core,
            "versions": dict(self.versions),
            "blas": [dict(each) for each in self.blas],
            "cpu": self.cpu,
            "platform": self.platform,
        }


@dataclass(frozen=True, slots=True)
class Provenance:
    """What a play was, how it ended, and with what it was computed: the metadata of its files."""

    summary: StoredSummary
    """Which play it is, and what it came to."""
    contents: Contents
    """What is needed to read its trace."""
    machine: Machine
    """With what it was computed."""
    title: str
    """Of the scenario."""
    fingerprint: Mapping[str, Any]
    """What was played, from which it can be played again; `play` in the file."""
    plugins: Sequence[Mapping[str, Any]]
    """The classes and functions that took part, and what their code is known by."""
    further: Mapping[str, Any] = field(default_factory=dict)
    """What a file of a later version says beyond that; it is kept when the file is rewritten."""
    lacking: frozenset[str] = frozenset()
    """What a file of an earlier version does not say; it is not made up when it is rewritten."""

    @property
    def play(self) -> PlayId:
        """Which play it is."""
        return self.summary.play

    def with_play(self, play: PlayId) -> Provenance:
        """Return the same provenance under another identity.

        Args:
            play: What the play is called instead.
        """
        return replace(self, summary=replace(self.summary, play=play))

    def with_checksums(self, checksums: Mapping[str, str]) -> Provenance:
        """Return the same provenance for tables that are to be written.

        Args:
            checksums: Those of the tables, by name.
        """
        contents = replace(self.contents, checksums=checksums, format=FORMAT)
        return replace(self, contents=contents)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Provenance:
        """Return the provenance that a file holds, whichever version has written it.

        Args:
            data: The provenance as it is in the file.

        Raises:
            KeyError: Something is missing that files of all versions have.
        """
        made = cls(
            summary=StoredSummary.from_json(data),
            contents=Contents.from_json(data),
            machine=Machine.from_json(data),
            title=data.get("title", ""),
            fingerprint=data.get("play", {}),
            plugins=data.get("plugins", ()),
        )
        known = made.to_json().keys()
        return replace(
            made,
            further={name: value for name, value in data.items() if name not in known},
            lacking=frozenset(known - data.keys()),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the provenance as a file holds it."""
        data = {
            **self.further,
            **self.summary.to_json(),
            **self.contents.to_json(),
            **self.machine.to_json(),
            "title": self.title,
            "play": dict(self.fingerprint),
            "plugins": [dict(each) for each in self.plugins],
        }
        return {name: value for name, value in data.items() if value or name not in self.lacking}


def describe_play(
    scenario: Scenario,
    optimizer: str,
    replication: int,
    trace: Trace,
    *,
    setting: Setting,
    identity: str | None = None,
    warnings: Sequence[str] = (),
) -> Provenance:
    """Return what a play was, how it ended, and with what it was computed.

    Args:
        scenario: What was played, without a sweep.
        optimizer: The name of the one that played.
        replication: Its number, from 0.
        trace: What happened.
        setting: The swept values that make a difference.
        identity: That of the scenario with its sweep; by default, that of *scenario*.
        warnings: What was warned of while it was played.
    """
    contents = Contents.of_trace(trace)
    fingerprint = scenario.fingerprint(optimizer)
    plugins = list_plugins(scenario, optimizer)
    family = name_family(optimizer, fingerprint, plugins)
    return Provenance(
        summary=StoredSummary(
            play=PlayId(
                key=name_play(family, scenario.seed, replication),
                family=family,
                optimizer=optimizer,
                setting=dict(setting),
                seed=scenario.seed,
                replication=replication,
                scenario=identity or scenario.identity(),
            ),
            record=scenario.record,
            digest=contents.digest,
            measures=_measure(trace),
            meters=_keep_finite(measures.last_meters(trace)),
            broken=_count_invalid(trace),
            ended=trace.ended,
            experts=measures.count_by_expert(trace),
            rounds_planned=scenario.rules.most_rounds,
            warnings=list(warnings),
            knows_best=trace.knows_best,
        ),
        contents=contents,
        machine=Machine.here(),
        title=scenario.title,
        fingerprint=fingerprint,
        plugins=plugins,
    )


def _measure(trace: Trace) -> dict[str, float | None]:
    """Compute the few numbers that a table of plays shows."""
    rounds, counts, ages = len(trace), measures.tally(trace), measures.staleness(trace)
    average = measures.regret(trace).mean() if rounds else nan
    enough = rounds >= measures.FEWEST_ROUNDS
    early, late = measures.octaves(measures.regret(trace)) if enough else (nan, nan)
    numbers = {
        "rounds": rounds,
        "idle_rounds": measures.idle_rounds(trace),
        "impossible_rounds": measures.impossible_rounds(trace),
        "average_regret": average,
        "mean_reward": measures.average_reward(trace)[-1] if rounds else nan,
        "best_seen": measures.best_seen(trace),
        "unobserved_rounds": measures.unobserved_rounds(trace),
        "second_quarter_regret": early,
        "second_half_regret": late,
        "last_quarter_regret": measures.regret(trace)[-(rounds // 4) :].mean() if enough else nan,
        "spent": trace.spent,
        **asdict(counts),
        "staleness": ages.mean() if len(ages) else nan,
        "wall": trace.rounds[WALL].sum(),
    }
    return _keep_finite(numbers)


def _keep_finite(numbers: Mapping[str, float]) -> dict[str, float | None]:
    return {name: float(n) if isfinite(n) else None for name, n in numbers.items()}


def _count_invalid(trace: Trace) -> dict[str, dict[str, Any]]:
    """Count, for each source that gave something useless, how often, of how many, and why first."""
    counts: dict[str, dict[str, Any]] = {}
    replies = trace.replies
    bad = (replies["fate"] == Fate.INVALID) & (replies["fault"] == "")
    for source in np.unique(replies["source"][bad]).tolist():
        of_source = replies["source"] == source
        counts[source] = {
            "invalid": int((bad & of_source).sum()),
            "asked": int(of_source.sum()),
            "reason": str(replies["reason"][bad & of_source][0]),
        }
    return counts


@cache
def _machine() -> Machine:
    blas = [
        {name: pool.get(name) for name in ("internal_api", "version", "architecture")}
        for pool in threadpool_info()
        if pool.get("user_api") == "blas"
    ]
    return Machine(
        core=None,
        versions={
            "sparq-sim": sparq_sim.__version__,
            "python": platform.python_version(),
            "numpy": np.__version__,
            "pyarrow": pa.__version__,
        },
        blas=sorted(blas, key=canonical),
        cpu=_cpu(),
        platform=platform.platform(),
    )


def _cpu() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    found = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return found[1] if found else platform.processor() or platform.machine()
