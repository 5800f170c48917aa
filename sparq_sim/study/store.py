"""The store: a study's folder as its database, a Parquet file a finished play."""

from __future__ import annotations

import json
import os
import platform
import re
import socket
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from errno import errorcode
from functools import cache
from hashlib import blake2b
from io import BytesIO
from math import isfinite, nan
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias
from uuid import uuid4
from zipfile import BadZipFile, ZipFile, ZipInfo

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pydantic import BaseModel, ValidationError
from threadpoolctl import threadpool_info

import sparq_sim
from sparq_sim.errors import SparqError
from sparq_sim.plugin.origins import find_origins
from sparq_sim.plugin.sources import Plugin, hash_core
from sparq_sim.simulation import measures
from sparq_sim.simulation.records import Fate
from sparq_sim.simulation.trace import AS_PLANNED, WALL, Trace

if TYPE_CHECKING:
    from sparq_sim.scenario.model import Scenario
    from sparq_sim.simulation.play import Played

FORMAT = 2
"""Of the files; another number is another format, which this version cannot read."""

Kind: TypeAlias = Literal["rounds", "replies"]
Provenance: TypeAlias = dict[str, Any]
Setting: TypeAlias = Mapping[str, object]
"""The swept values that make a difference to a play, by dotted path."""
Label: TypeAlias = tuple[str, str]
"""An optimizer, and its setting as canonical JSON: what a row of a table is about."""

hash_core()  # Now, for a file may be edited while this process goes on with what it has loaded.

KINDS: tuple[Kind, Kind] = ("rounds", "replies")
SCENARIO = "scenario.json"
SET_ASIDE = "set-aside"

_META = b"sparq_sim"
_PLAY = re.compile(r"([0-9a-f]{32})\.parquet")
_ARCHIVE = re.compile(r"compact-[0-9a-f]{16}\.parquet")
_PART = re.compile(r"\..+\.(?P<host>[0-9a-f]{8})\.(?P<pid>\d+)\.[0-9a-f]{8}\.part")
_HOST = blake2b(socket.gethostname().encode(), digest_size=4).hexdigest()


class StoreError(SparqError):
    """A study folder cannot be read or written."""


class _UnfitError(Exception):
    """A file is foreign, truncated or corrupted; the message says how."""


# What a play is called


def canonical(thing: object) -> str:
    """Write *thing* as JSON in the one way that equal things share."""
    return json.dumps(thing, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _hash(thing: object) -> str:
    return blake2b(canonical(thing).encode(), digest_size=16).hexdigest()


def code(plugins: Sequence[Mapping[str, object]]) -> str:
    """Name the code that a play is computed by: that of sparq-sim and of its plug-ins."""
    return _hash([sparq_sim.__version__, hash_core(), plugins])


def family(
    optimizer: str, fingerprint: Mapping[str, object], plugins: Sequence[Mapping[str, object]]
) -> str:
    """Name what fixes a play but its seed and replication, its code included.

    The name of the *optimizer* too: two that are alike are still two.
    """
    return _hash([FORMAT, code(plugins), optimizer, fingerprint])


def key(family: str, seed: int, replication: int) -> str:
    """Name a play."""
    return _hash([family, seed, replication])


@dataclass(frozen=True, slots=True)
class PlayId:
    """What tells a play from all others: planned, being computed, stored or failed."""

    key: str
    """Hashes *family*, *seed* and *replication*; the name of its files."""
    family: str
    """Hashes all that fixes the play but its seed and replication, the code included."""
    optimizer: str
    """The name of the optimizer that plays."""
    setting: Setting = field(hash=False)
    """The swept values that make a difference to it."""
    seed: int
    """Of the scenario."""
    replication: int
    """From 0."""
    scenario: str = ""
    """The identity of the scenario that it is played for; empty in files of early versions."""

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> PlayId:
        """Return the identity that the provenance of a stored play holds.

        Args:
            data: The provenance, as `as_json` and others have written it.

        Raises:
            KeyError: A part of the identity is missing.
        """
        return cls(
            key=data["key"],
            family=data["family"],
            optimizer=data["optimizer"],
            setting=data["setting"],
            seed=data["seed"],
            replication=data["replication"],
            scenario=data.get("scenario", ""),
        )

    @property
    def label(self) -> Label:
        """The row of a table that the play belongs to."""
        return self.optimizer, canonical(self.setting)


def plugins_used(scenario: Scenario, optimizer: str) -> list[dict[str, object]]:
    """List the classes and functions that take part in a play, and what their code is known by."""
    return [origin.to_provenance() for origin in find_origins(models_used(scenario, optimizer))]


def models_used(scenario: Scenario, optimizer: str) -> list[Plugin]:
    """List the classes of all models that take part in a play, and the functions."""
    taking_part = (
        scenario.environment,
        getattr(scenario, "experts", {}),
        scenario.optimizers[optimizer],
        scenario.feedback,
        scenario.thinking,
    )
    return [*dict.fromkeys(_plugins(taking_part))]


def _plugins(thing: object) -> Iterator[Plugin]:
    """Find the classes of all models in *thing*, and the functions."""
    match thing:
        case BaseModel():
            yield type(thing)
            for name in type(thing).model_fields:
                yield from _plugins(getattr(thing, name))
        case Mapping():
            for value in thing.values():
                yield from _plugins(value)
        case list() | tuple() | set() | frozenset():
            for value in thing:
                yield from _plugins(value)
        case FunctionType():
            yield thing


# Provenance


def provenance(
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
        scenario: The one played, without a sweep.
        optimizer: The name of the one that played.
        replication: Its number, from 0.
        trace: What happened.
        setting: The swept values that make a difference.
        identity: That of the scenario with its sweep, by which its plays are told from others.
        warnings: What was warned of while it was played.
    """
    return {
        **_of_play(scenario, optimizer, replication),
        **_of_trace(trace),
        **_made_with(),
        "scenario": identity or scenario.identity(),
        "setting": dict(setting),
        "record": scenario.record,
        "measures": measured(trace),
        "broken": broken(trace),
        "experts": measures.count_by_expert(trace),
        "warnings": list(warnings),
    }


def _of_play(scenario: Scenario, optimizer: str, replication: int) -> Provenance:
    """Return what was played, and the code that it was played by."""
    fingerprint = scenario.fingerprint(optimizer)
    plugins = plugins_used(scenario, optimizer)
    kin = family(optimizer, fingerprint, plugins)
    return {
        "key": key(kin, scenario.seed, replication),
        "family": kin,
        "title": scenario.title,
        "play": fingerprint,
        "optimizer": optimizer,
        "seed": scenario.seed,
        "replication": replication,
        "rounds_planned": scenario.rules.most_rounds,
        "plugins": plugins,
    }


def _of_trace(trace: Trace) -> Provenance:
    """Return what is needed to read a trace."""
    rounds_digest, digest = trace.digests()
    return {
        "format": FORMAT,
        "digest": digest,
        "rounds_digest": rounds_digest,
        "ended": trace.ended,
        "spent": trace.spent,
        "coordinates": list(trace.coordinates),
        "columns": {"rounds": list(trace.rounds), "replies": list(trace.replies)},
    }


def _made_with() -> Provenance:
    """Return with what plays are computed here."""
    return {"core": hash_core(), **_machine()}


def measured(trace: Trace) -> dict[str, float | None]:
    """Compute the few numbers that a table of plays shows."""
    rounds, counts, ages = len(trace), measures.tally(trace), measures.staleness(trace)
    average = measures.regret(trace).mean() if rounds else nan
    # One resample: only the value is wanted, and the interval comes from the replications.
    growth = measures.exponent(measures.regret(trace), resamples=1).value if rounds >= 20 else nan
    numbers = {
        "rounds": rounds,
        "idle_rounds": measures.idle_rounds(trace),
        "impossible_rounds": measures.impossible_rounds(trace),
        "average_regret": average,
        "exponent": growth,
        "spent": trace.spent,
        **asdict(counts),
        "staleness": ages.mean() if len(ages) else nan,
        "wall": trace.rounds[WALL].sum(),
    }
    return {name: float(n) if isfinite(n) else None for name, n in numbers.items()}


def broken(trace: Trace) -> dict[str, dict[str, Any]]:
    """Count, for each source that gave something useless, how often, of how many, and why first."""
    told: dict[str, dict[str, Any]] = {}
    replies = trace.replies
    bad = (replies["fate"] == Fate.INVALID) & (replies["fault"] == "")
    for source in np.unique(replies["source"][bad]).tolist():
        of_source = replies["source"] == source
        told[source] = {
            "invalid": int((bad & of_source).sum()),
            "asked": int(of_source.sum()),
            "reason": str(replies["reason"][bad & of_source][0]),
        }
    return told


@cache
def _machine() -> dict[str, Any]:
    blas = [
        {name: pool.get(name) for name in ("internal_api", "version", "architecture")}
        for pool in threadpool_info()
        if pool.get("user_api") == "blas"
    ]
    return {
        "versions": {
            "sparq-sim": sparq_sim.__version__,
            "python": platform.python_version(),
            "numpy": np.__version__,
            "pyarrow": pa.__version__,
        },
        "blas": sorted(blas, key=canonical),
        "cpu": _cpu(),
        "platform": platform.platform(),
    }


def _cpu() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    found = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return found[1] if found else platform.processor() or platform.machine()


# Plays as bytes, and back


@dataclass(frozen=True)
class Files:
    """A finished play as the bytes of its files."""

    key: str
    rounds: bytes
    replies: bytes | None


@dataclass(frozen=True)
class StoredPlay:
    """A play read back; where only rounds were recorded, the trace has no columns of replies."""

    trace: Trace
    provenance: Provenance


def encode(trace: Trace, provenance: Provenance) -> Files:
    """Write a play as Parquet, its provenance in the metadata."""
    taken = _labels(provenance).keys()
    if clash := sorted(taken & (trace.rounds.keys() | trace.replies.keys())):
        raise StoreError(f"two columns would be called {clash[0]!r}; rename the coordinate")
    full = provenance["record"] == "full"
    return Files(
        provenance["key"],
        rounds=_to_bytes(_table(trace.rounds, provenance)),
        replies=_to_bytes(_table(trace.replies, provenance)) if full else None,
    )


def _table(columns: Mapping[str, NDArray[Any]], provenance: Provenance) -> pa.Table:
    return _described(_labelled(_to_table(columns), provenance), provenance)


def _to_table(columns: Mapping[str, NDArray[Any]]) -> pa.Table:
    arrays = {
        # The type of a column without rows cannot be guessed.
        name: pa.array(column.tolist(), pa.string()) if column.dtype.kind == "U" else column
        for name, column in columns.items()
    }
    return pa.table(arrays)


def _described(table: pa.Table, provenance: Provenance) -> pa.Table:
    return table.replace_schema_metadata({_META: canonical(provenance)})


def _labels(provenance: Provenance) -> dict[str, object]:
    """Return what is the same in all rows of a play, and tells it from other plays, by column."""
    return {
        "scenario": provenance.get("scenario", ""),
        "optimizer": provenance["optimizer"],
        "setting": canonical(provenance["setting"]),
        "seed": provenance["seed"],
        "replication": provenance["replication"],
        **provenance["setting"],
    }


def _labelled(table: pa.Table, provenance: Provenance) -> pa.Table:
    """Put the columns of labels before the others; files of earlier versions lack some."""
    rows = len(table)
    labels = {
        name: table.column(name)
        if name in table.column_names
        else pa.array([value] * rows, _arrow_type(value))
        for name, value in _labels(provenance).items()
    }
    others = [name for name in table.column_names if name not in labels]
    return pa.table(labels | {name: table.column(name) for name in others})


def _arrow_type(value: object) -> pa.DataType:
    match value:
        case bool():
            return pa.bool_()
        case int():
            return pa.int64()
        case float():
            return pa.float64()
    return pa.string()


def _to_bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with _writer(sink, table.schema) as writer:
        writer.write_table(table)
    written: bytes = sink.getvalue().to_pybytes()
    return written


def _from_bytes(content: bytes, columns: list[str] | None = None) -> pa.Table:
    return pq.read_table(pa.BufferReader(content), columns=columns, page_checksum_verification=True)


def _writer(where: object, schema: pa.Schema) -> pq.ParquetWriter:
    # Dictionaries for text only: among numbers they would merge what differs in no more than
    # the bits of a NaN, and a digest sees that.
    text = [field.name for field in schema if pa.types.is_string(field.type)]
    return pq.ParquetWriter(
        where, schema, compression="zstd", use_dictionary=text or False, write_page_checksum=True
    )


def _from_tables(rounds: pa.Table, replies: pa.Table | None, told: Provenance) -> Trace:
    """Make a trace of its tables; without that of *replies*, it has no columns of them."""
    trace = Trace(
        rounds=_columns(rounds, told["columns"]["rounds"]),
        replies={} if replies is None else _columns(replies, told["columns"]["replies"]),
        coordinates=tuple(told["coordinates"]),
        ended=told["ended"],
        spent=told["spent"],
        provenance=told,
    )
    if trace.digest() != told["rounds_digest" if replies is None else "digest"]:
        raise _UnfitError("its content does not match its digest")
    return trace


def _columns(table: pa.Table, names: Sequence[str]) -> dict[str, NDArray[Any]]:
    return {name: _to_numpy(table.column(name)) for name in names}


def _to_numpy(column: pa.ChunkedArray) -> NDArray[Any]:
    if pa.types.is_string(column.type) or pa.types.is_dictionary(column.type):
        return np.array(column.to_pylist(), dtype=np.str_)
    array: NDArray[Any] = column.combine_chunks().to_numpy(zero_copy_only=False)
    return array


# The folder


@contextmanager
def _disk(what: str, path: Path) -> Iterator[None]:
    """Turn trouble with the disk into one sentence."""
    try:
        yield
    except OSError as error:
        name = errorcode.get(error.errno or 0, type(error).__name__)
        raise StoreError(
            f"cannot {what} {path}: {name}, {error.strerror or error}; "
            "free space, mend the permissions or choose another folder, and run again"
        ) from error


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that it is there in full or not at all, even if the power fails."""
    with _whole(path) as part, open(part, "wb") as file:
        file.write(content)


@contextmanager
def _whole(path: Path) -> Iterator[Path]:
    """Give a temporary name to write to; afterwards it is *path*, or gone."""
    part = _part(path)
    try:
        with _disk("write", path):
            yield part
            _sync(part)
            os.replace(part, path)
            _sync(path.parent)
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def _part(path: Path) -> Path:
    return path.with_name(f".{path.stem}.{_HOST}.{os.getpid()}.{uuid4().hex[:8]}.part")


def _sync(path: Path) -> None:
    if path.is_dir() and os.name == "nt":  # pragma: no cover - folders cannot be synced there
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@dataclass(frozen=True, slots=True)
class StoredSummary:
    """What is known of a finished play without reading its rounds."""

    play: PlayId
    """Which play it is."""
    record: str
    """What is stored: its "rounds", or "full", its replies as well."""
    digest: str
    """Of its trace, replies included."""
    measures: Mapping[str, float | None]
    """The numbers that a table of plays shows; None for those that are not finite."""
    broken: Mapping[str, Mapping[str, Any]]
    """By source, what was useless in its answers, if anything was."""
    ended: str
    """Why the play ended: by its "rounds", its "horizon", or something else."""
    experts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """By expert, how many points it was asked about, and how many attempts had each fate."""
    rounds_planned: int | None = None
    """None where that is not known."""
    warnings: Sequence[str] = ()
    """What was warned of while it was played."""

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> StoredSummary:
        """Return what a provenance says; what one of an older version lacks has its default.

        Args:
            data: The provenance as it is in the file.

        Raises:
            KeyError: Something is missing that files of all versions have.
        """
        optional = ("experts", "rounds_planned", "warnings")
        return cls(
            play=PlayId.from_json(data),
            record=data["record"],
            digest=data["digest"],
            measures=data["measures"],
            broken=data["broken"],
            ended=data["ended"],
            **{name: data[name] for name in optional if name in data},
        )

    @property
    def key(self) -> str:
        """The key of the play."""
        return self.play.key

    @property
    def optimizer(self) -> str:
        """The name of the optimizer that played."""
        return self.play.optimizer

    @property
    def setting(self) -> Setting:
        """The swept values that made a difference to the play."""
        return self.play.setting

    @property
    def seed(self) -> int:
        """The seed of the play."""
        return self.play.seed

    @property
    def replication(self) -> int:
        """The replication that was played, from 0."""
        return self.play.replication

    @property
    def label(self) -> Label:
        """The row of a table that the play belongs to."""
        return self.play.label

    @property
    def ended_early(self) -> bool:
        """Whether the play ended before its rounds or its horizon."""
        return self.ended not in AS_PLANNED


class Store:
    """A study's folder: `rounds/`, `replies/`, and in `set-aside/` what does not belong there.

    *notes* says what was set aside, and why.
    """

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder)
        self.notes: list[str] = []
        self._archives: dict[Kind, list[_Archive]] = {kind: [] for kind in KINDS}

    # Writing

    def prepare(self) -> None:
        """Make the folder, and remove what killed writers of this machine have left behind."""
        for path in (self.folder / "rounds", self.folder / "replies", self.folder):
            with _disk("make", path):
                path.mkdir(parents=True, exist_ok=True)
            for part in path.glob(".*.part"):
                if (found := _PART.fullmatch(part.name)) and _dead(found["host"], found["pid"]):
                    with _disk("remove", part):
                        part.unlink(missing_ok=True)

    @contextmanager
    def marked(self) -> Iterator[str]:
        """Put a file into the folder by which workers know that they see it."""
        path = _part(self.folder / "run")
        with _disk("write", path):
            path.touch()
        try:
            yield path.name
        finally:
            with suppress(OSError):
                path.unlink()

    @property
    def empty(self) -> bool:
        """Whether there is no file in the folder that could be a finished play."""
        return next((self.folder / "rounds").glob("*.parquet"), None) is None

    def put(self, files: Files) -> None:
        """Write a play; its file of rounds comes last, and says that it is finished."""
        if files.replies is not None:
            write_whole(self._path("replies", files.key), files.replies)
        write_whole(self._path("rounds", files.key), files.rounds)

    def _path(self, kind: Kind, key: str) -> Path:
        return self.folder / kind / f"{key}.parquet"

    def set_aside(self, path: Path, reason: str) -> None:
        """Move a file out of the way, and note it."""
        name = self._move_aside(path)
        self.notes.append(f"set aside {path} as {SET_ASIDE}/{name}: {reason}")

    def _move_aside(self, path: Path) -> str:
        home = self.folder / SET_ASIDE
        target = home / path.relative_to(self.folder).as_posix().replace("/", "-")
        while target.exists():
            target = target.with_name(f"{uuid4().hex[:4]}-{target.name}")
        with _disk("set aside", path):
            home.mkdir(exist_ok=True)
            os.replace(path, target)
        return target.name

    def retire(self, keys: Iterable[str]) -> set[str]:
        """Move plays out of the way, and return the keys of those that are.

        A compacted file is moved where all its plays are to go, and stays as it is elsewhere.
        """
        gone = set(keys)
        for kind in KINDS:
            for archive in [each for each in self._archives[kind] if gone.issuperset(each.keys)]:
                self._archives[kind].remove(archive)
                self._move_aside(archive.path)
            for path in [self._path(kind, key) for key in sorted(gone)]:
                if path.exists():
                    self._move_aside(path)
        return {key for key in gone if not any(key in each for each in self._archives["rounds"])}

    def relabel(self, labels: Mapping[str, Mapping[str, object]]) -> None:
        """Write plays again, by key, with other *labels* in their provenance and their rows."""
        for key, told in labels.items():
            stored = self.read(key)
            self.put(encode(stored.trace, {**stored.provenance, **told}))
        if any(key in archive for key in labels for archive in self._archives["rounds"]):
            self.compact()  # Else what is in a compacted file would be there twice.

    # Looking

    def peek(self, key: str, record: str = "rounds") -> StoredSummary | None:
        """Look whether a play is finished, as fully recorded as *record* says."""
        path = self._path("rounds", key)
        try:
            found = StoredSummary.from_json(_provenance(path, key)) if path.exists() else None
        except _UnfitError:
            return None
        lacks = record == "full" and (
            found is None or found.record != "full" or not self._path("replies", key).exists()
        )
        return None if lacks else found

    def survey(self, verify: Iterable[str] = ()) -> dict[str, StoredSummary]:
        """List the finished plays; read those to *verify* in full. Unfit files are set aside."""
        wanted = frozenset(verify)
        found: dict[str, StoredSummary] = {}
        self._archives = {kind: self._open_archives(kind) for kind in KINDS}
        for archive in self._archives["rounds"]:
            found.update(archive.summaries())
        self._check_replies()
        for path in self._listed("rounds"):
            key = path.stem
            try:
                if not _PLAY.fullmatch(path.name):
                    raise _UnfitError("it is not a play")
                told = _provenance(path, key)
                if told["record"] == "full" and not self._has_replies(key):
                    raise _UnfitError("its replies are missing")
                found[key] = StoredSummary.from_json(told)
                if key in wanted:
                    self._read_checked(key)
            except _UnfitError as unfit:
                found.pop(key, None)
                self.set_aside(path, str(unfit))
                replies = self._path("replies", key)
                if key in wanted and replies.exists():
                    self.set_aside(replies, f"it belongs to {path.name}, which was set aside")
        for key in wanted & found.keys():
            if not self._path("rounds", key).exists():
                self._verify_archived(key, found)
        return found

    def _verify_archived(self, key: str, found: dict[str, StoredSummary]) -> None:
        try:
            self._read_checked(key)
        except _UnfitError as unfit:
            for kind in KINDS:
                for archive in [a for a in self._archives[kind] if key in a]:
                    self._archives[kind].remove(archive)
                    self.set_aside(archive.path, str(unfit))
            for lost in [k for k in found if not self._path("rounds", k).exists()]:
                if not any(lost in archive for archive in self._archives["rounds"]):
                    del found[lost]

    def _check_replies(self) -> None:
        for path in self._listed("replies"):
            try:
                if not _PLAY.fullmatch(path.name):
                    raise _UnfitError("it is not a play")
                _provenance(path, path.stem)
            except _UnfitError as unfit:
                self.set_aside(path, str(unfit))

    def _listed(self, kind: Kind) -> list[Path]:
        """Give the files but for hidden ones, which are temporary or the file system's own."""
        home = self.folder / kind
        with _disk("list", home):
            if self.folder.exists() and not self.folder.is_dir():
                raise NotADirectoryError(20, "it is a file, not a folder")
            names = sorted(os.listdir(home)) if home.is_dir() else []
        plain = [home / name for name in names if not name.startswith(".")]
        return [path for path in plain if not _ARCHIVE.fullmatch(path.name)]

    def _open_archives(self, kind: Kind) -> list[_Archive]:
        home, archives = self.folder / kind, []
        for path in sorted(home.glob("compact-*.parquet")) if home.is_dir() else ():
            try:
                archives.append(_Archive(path))
            except _UnfitError as unfit:
                self.set_aside(path, str(unfit))
        return archives

    def _has_replies(self, key: str) -> bool:
        return self._path("replies", key).exists() or any(
            key in archive for archive in self._archives["replies"]
        )

    # Reading

    def read(self, key: str) -> StoredPlay:
        """Read a play back; what is not as it was written is an error that names the file."""
        try:
            return self._read_checked(key)
        except _UnfitError as unfit:
            raise StoreError(f"{self._path('rounds', key)}: {unfit}") from unfit

    def _read_checked(self, key: str) -> StoredPlay:
        rounds, told = self._load("rounds", key)
        replies = self._load("replies", key)[0] if told["record"] == "full" else None
        return StoredPlay(_from_tables(rounds, replies, told), told)

    def table(self, kind: Kind, key: str) -> pa.Table:
        """Read one table of a play, with the columns that tell it from other plays."""
        try:
            return self._load(kind, key)[0]
        except _UnfitError as unfit:
            raise StoreError(f"{self._path(kind, key)}: {unfit}") from unfit

    def provenance(self, key: str) -> Provenance:
        """Read what a play was, how it ended, and with what it was computed."""
        try:
            return self._load("rounds", key, columns=[])[1]
        except _UnfitError as unfit:
            raise StoreError(f"{self._path('rounds', key)}: {unfit}") from unfit

    def _load(
        self, kind: Kind, key: str, columns: list[str] | None = None
    ) -> tuple[pa.Table, Provenance]:
        path = self._path(kind, key)
        if path.exists():
            told = _provenance(path, key)
            with _fit("it cannot be read"):
                table = _from_bytes(path.read_bytes(), columns)
            return _labelled(table, told) if columns is None else table, told
        for archive in self._archives[kind] or self._open_archives(kind):
            if key in archive:
                table, told = archive.table(key, kind, columns), archive.provenance(key)
                return _labelled(table, told) if columns is None else table, told
        raise _UnfitError("there is no such play")

    # Compacting

    def compact(self) -> None:
        """Merge the small files into one of rounds and one of replies, a row group a play."""
        self.prepare()
        found = self.survey(verify=self._small())
        # What is merged again under other labels, or more fully recorded, is another file.
        state = _hash(
            [[k, e.record, e.play.scenario, dict(e.setting)] for k, e in sorted(found.items())]
        )
        written = [
            self._merge(kind, [key for key in sorted(found) if self._in(kind, key)], state)
            for kind in KINDS
        ]
        merged = [set(_Archive(path).keys) if path else set() for path in written]
        # Rounds go first: while they are there, their replies are wanted.
        for kind, path, safe in zip(KINDS, written, merged, strict=True):
            for old in self._archives[kind]:
                if old.path != path:
                    with _disk("remove", old.path):
                        old.path.unlink()
            for key in safe:
                with _disk("remove", self._path(kind, key)):
                    self._path(kind, key).unlink(missing_ok=True)
        self.survey()

    def _small(self) -> list[str]:
        return [path.stem for path in self._listed("rounds")]

    def _in(self, kind: Kind, key: str) -> bool:
        return kind == "rounds" or self._has_replies(key)

    def _merge(self, kind: Kind, keys: Sequence[str], state: str) -> Path | None:
        if not keys:
            return None
        path = self.folder / kind / f"compact-{state[:16]}.parquet"
        if path.exists():
            return path
        shared = _Shared()
        schemas: list[pa.Schema] = []
        plays, groups = [], 0
        for key in keys:
            table, told = self._load(kind, key)
            if table.schema not in schemas:
                schemas.append(table.schema)
            plays.append(
                {
                    "key": key,
                    "group": groups if len(table) else None,
                    "told": {name: shared.place(value) for name, value in told.items()},
                }
            )
            groups += bool(len(table))
        told = {"format": FORMAT, "plays": plays, "shared": shared.values}
        schema = unified(schemas).with_metadata({_META: canonical(told)})
        with _whole(path) as part, _writer(part, schema) as writer:
            for key in keys:
                table = self._load(kind, key)[0]
                if len(table):
                    writer.write_table(conformed(table, schema), row_group_size=len(table))
        return path


class _Shared:
    """Gathers values, each once: most of a provenance is the same in all plays."""

    def __init__(self) -> None:
        self.values: list[object] = []
        self._places: dict[str, int] = {}

    def place(self, value: object) -> int:
        text = canonical(value)
        if text not in self._places:
            self._places[text] = len(self.values)
            self.values.append(value)
        return self._places[text]


class _Archive:
    """A compacted file: a row group a play, and a map of their provenances."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with _fit("it cannot be read"):
            self._file = pq.ParquetFile(path, page_checksum_verification=True)
        told = _told(self._file.schema_arrow.metadata)
        try:
            self._shared: list[Any] = told["shared"]
            self._plays = {play["key"]: play for play in told["plays"]}
        except (KeyError, TypeError) as error:
            raise _UnfitError(f"its map of plays lacks {error}") from error

    def __contains__(self, key: str) -> bool:
        return key in self._plays

    @property
    def keys(self) -> Iterable[str]:
        return self._plays.keys()

    def provenance(self, key: str) -> Provenance:
        return {name: self._shared[at] for name, at in self._plays[key]["told"].items()}

    def summaries(self) -> dict[str, StoredSummary]:
        return {key: StoredSummary.from_json(self.provenance(key)) for key in self._plays}

    def table(self, key: str, kind: Kind, columns: list[str] | None) -> pa.Table:
        told, group = self.provenance(key), self._plays[key]["group"]
        known = set(self._file.schema_arrow.names)
        names = [name for name in (*_labels(told), *told["columns"][kind]) if name in known]
        names = names if columns is None else columns
        if group is None:
            return self._file.schema_arrow.empty_table().select(names).replace_schema_metadata(None)
        with _fit("it cannot be read"):
            table = self._file.read_row_group(group, columns=names)
        return table.select(names).replace_schema_metadata(None)


@contextmanager
def _fit(what: str) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError, ValueError, KeyError, TypeError) as error:
        # Arrow's own complaints about content have no number; those of the system have one.
        if isinstance(error, OSError) and error.errno is not None:
            name = errorcode.get(error.errno, "")
            raise StoreError(
                f"cannot read {error.filename or 'a file'}: {name}, {error}"
            ) from error
        reason = next(iter(str(error).splitlines()), repr(error))
        raise _UnfitError(f"{what} ({reason})") from error


def _told(metadata: Mapping[bytes, bytes] | None) -> Provenance:
    if _META not in (metadata or {}):
        raise _UnfitError("it was not written by sparq-sim")
    with _fit("its provenance cannot be read"):
        told = json.loads((metadata or {})[_META])
    if not isinstance(told, dict):
        raise _UnfitError("its provenance cannot be read")
    check_format(told.get("format"), "it holds plays")
    return told


def check_format(number: object, what: str) -> None:
    """Refuse files of another format, which another version has written."""
    if number != FORMAT:
        raise StoreError(
            f"{what} of format {number!r}, and this version ({sparq_sim.__version__}) reads "
            f"format {FORMAT}; use the version that wrote it, or another folder"
        )


def _provenance(path: Path, key: str) -> Provenance:
    if not path.is_file():
        raise _UnfitError("it is not a file")
    with _fit("it cannot be read"):
        schema = pq.read_schema(path)
    try:
        told = _told(schema.metadata)
    except StoreError as error:
        raise StoreError(f"{path}: {error}") from error
    if "key" not in told:
        raise _UnfitError("it holds many plays, being compacted; none can be read from it alone")
    if told["key"] != key:
        raise _UnfitError(f"it holds the play {told['key']}, not the one it is called after")
    try:
        StoredSummary.from_json(told)
    except KeyError as error:
        raise _UnfitError(f"its provenance lacks {error}") from error
    return told


def _dead(host: str, pid: str) -> bool:
    """Say whether a process of this machine is gone; that of another may be alive."""
    if host != _HOST:
        return False
    try:
        os.kill(int(pid), 0)
        # In a container, nobody may be there to bury the dead.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except ProcessLookupError:
        return True
    except OSError:
        return False


def unified(schemas: Sequence[pa.Schema]) -> pa.Schema:
    """Give the one schema that holds all columns; where types disagree, numbers or text."""
    types: dict[str, pa.DataType] = {}
    for schema in schemas:
        for column in schema:
            known = types.setdefault(column.name, column.type)
            if known != column.type:
                both = {known, column.type}
                types[column.name] = (
                    pa.float64() if both <= {pa.int64(), pa.float64()} else pa.string()
                )
    return pa.schema(types.items())


def conformed(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Give *table* the columns of *schema*, empty where it has none."""
    columns = [
        table.column(field.name).cast(field.type)
        if field.name in table.column_names
        else pa.nulls(len(table), field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema.remove_metadata())


def read(folder: Path | str, key: str) -> StoredPlay:
    """Read one play from a study folder."""
    return Store(folder).read(key)


def compact(folder: Path | str) -> list[str]:
    """Merge the many small files of a study folder; say what had to be set aside."""
    store = Store(folder)
    store.compact()
    return store.notes


# A trace alone


def save_trace(trace: Trace, path: Path) -> None:
    """Write a trace to one file: a zip archive of the tables that a study keeps of a play."""
    if not path.name or path.is_dir():
        raise StoreError(f"{str(path)!r} is no name for a file; give one, such as play.zip")
    if not path.parent.is_dir():
        raise StoreError(f"cannot write {path}: there is no folder {path.parent}; make it first")
    told = _saved_with(trace)
    tables: dict[Kind, Mapping[str, NDArray[Any]]] = {"rounds": trace.rounds}
    if told["record"] == "full":
        tables["replies"] = trace.replies
    packed = BytesIO()
    with ZipFile(packed, "w") as archive:
        for kind, columns in tables.items():
            content = _to_bytes(_described(_to_table(columns), told))
            # By name alone, the present time would be written as well, and no two files be equal.
            archive.writestr(ZipInfo(f"{kind}.parquet"), content)
    write_whole(path, packed.getvalue())


def _saved_with(trace: Trace) -> Provenance:
    """Return what is known of a trace and its play, to be kept in its file."""
    told = {**_made_with(), **trace.provenance, **_of_trace(trace)}
    told["record"] = "full" if trace.replies else "rounds"
    if trace.played is None:
        return told
    try:
        scenario = _scenario(trace.played)
        told |= _of_play(scenario, trace.played.optimizer_name, trace.played.replication)
    except (SparqError, ValidationError, OSError) as error:
        # The trace is worth keeping, though its play cannot be written down.
        told["unplayable"] = " ".join(str(error).split())
    return told | {"live": trace.played.live}


def _scenario(played: Played) -> Scenario:
    from sparq_sim.scenario.model import Scenario
    from sparq_sim.simulation.rules import Rules

    fields = {name: getattr(played.rules, name) for name in Rules.model_fields}
    fields |= {
        "environment": played.environment,
        "feedback": played.feedback,
        "experts": dict(played.experts),
        "optimizers": {played.optimizer_name: played.optimizer},
        "seed": played.seed,
    }
    return Scenario.model_validate(fields, context={"played": True})


def load_trace(path: Path) -> Trace:
    """Read a trace from the one file that `save_trace` has written."""
    remedy = "give a file that Trace.save has written"
    try:
        content = path.read_bytes()
    except OSError as error:
        reason = error.strerror or error
        raise StoreError(f"cannot read the trace {path}: {reason}; {remedy}") from error
    if content.startswith(b"PAR1"):
        raise StoreError(
            f"{path} is a table, as a study keeps them, and no trace alone: read it by "
            "Results.open(FOLDER).read(KEY).trace"
        )
    if not content.startswith(b"PK\x03\x04"):
        raise StoreError(f"{path} is no trace; {remedy}")
    try:
        return _unpacked(content)
    except _UnfitError as unfit:
        raise StoreError(f"{path} is damaged, or no trace: {unfit}; {remedy}") from unfit
    except StoreError as error:
        raise StoreError(f"{path}: {error}") from error


def _unpacked(content: bytes) -> Trace:
    with _fit("it is no archive of tables"):
        try:
            with ZipFile(BytesIO(content)) as archive:
                tables = {
                    kind: _from_bytes(archive.read(name))
                    for kind in KINDS
                    if (name := f"{kind}.parquet") in archive.namelist()
                }
        # What the archive's own notes may be made to say by damage.
        except (BadZipFile, EOFError, NotImplementedError, RuntimeError, struct.error) as error:
            raise _UnfitError(f"its archive cannot be read ({error})") from error
    if "rounds" not in tables:
        raise _UnfitError("it holds no rounds.parquet")
    told = _told(tables["rounds"].schema.metadata)
    if told.get("record") == "full" and "replies" not in tables:
        raise _UnfitError("it holds no replies.parquet, though replies were saved")
    with _fit("its provenance is not whole"):
        return _from_tables(tables["rounds"], tables.get("replies"), told)
