"""Trace files: one trace alone in one file, a zip archive of the tables that a study keeps."""

from __future__ import annotations

import struct
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import ZIP_STORED, BadZipFile, ZipFile, ZipInfo

import pyarrow as pa
from pydantic import ValidationError

from sparq_sim.errors import SparqError
from sparq_sim.simulation.trace import Trace
from sparq_sim.study.store.checksums import check_columns, hash_table
from sparq_sim.study.store.codec import (
    TABLES,
    TableName,
    describe_table,
    from_bytes,
    list_tables,
    make_tables,
    make_trace,
    read_metadata,
    to_bytes,
)
from sparq_sim.study.store.errors import StoreError, UnfitError, explain_content_errors
from sparq_sim.study.store.files import write_whole
from sparq_sim.study.store.keys import list_plugins, name_family, name_play
from sparq_sim.study.store.provenance import Contents, Machine

if TYPE_CHECKING:
    from sparq_sim.scenario.model import Scenario
    from sparq_sim.simulation.play import Played

__all__ = ["load_trace", "save_trace"]


def save_trace(trace: Trace, path: Path) -> None:
    """Write a trace to one file, in full or not at all, with what is known of its play.

    Args:
        trace: The trace.
        path: The file; one that is there is replaced.

    Raises:
        StoreError: The file cannot be written.
    """
    if not path.name or path.is_dir():
        raise StoreError(f"{str(path)!r} is no name for a file; give one, such as play.zip")
    if not path.parent.is_dir():
        raise StoreError(f"cannot write {path}: there is no folder {path.parent}; make it first")
    tables = make_tables(trace, full=bool(trace.replies))
    metadata = _describe(trace) | {
        "checksums": {name: hash_table(each, each.column_names) for name, each in tables.items()}
    }
    packed = BytesIO()
    with ZipFile(packed, "w") as archive:
        for name, table in tables.items():
            content = to_bytes(describe_table(table, metadata))
            # By name alone, the present time would be written as well, and no two files be equal.
            archive.writestr(ZipInfo(f"{name}.parquet"), content)
    write_whole(path, packed.getvalue())


def _describe(trace: Trace) -> dict[str, Any]:
    """Return what is known of a trace and its play, to be kept in its file."""
    metadata = {
        **Machine.here().to_json(),
        **trace.provenance,
        **Contents.of_trace(trace).to_json(),
        "record": "full" if trace.replies else "rounds",
    }
    if trace.played is None:
        return metadata
    try:
        metadata |= _describe_played(trace.played)
    except (SparqError, ValidationError, OSError) as error:
        # The trace is worth keeping, though its play cannot be written down.
        metadata["unplayable"] = " ".join(str(error).split())
    return metadata | {"live": trace.played.live}


def _describe_played(played: Played) -> dict[str, Any]:
    """Return what was played, as a provenance holds it."""
    scenario, optimizer = _make_scenario(played), played.optimizer_name
    fingerprint, plugins = scenario.fingerprint(optimizer), list_plugins(scenario, optimizer)
    family = name_family(optimizer, fingerprint, plugins)
    return {
        "key": name_play(family, scenario.seed, played.replication),
        "family": family,
        "title": scenario.title,
        "play": fingerprint,
        "optimizer": optimizer,
        "seed": scenario.seed,
        "replication": played.replication,
        "rounds_planned": scenario.rules.most_rounds,
        "plugins": plugins,
    }


def _make_scenario(played: Played) -> Scenario:
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
    """Read a trace from the one file that `save_trace` has written.

    Args:
        path: The file.

    Raises:
        StoreError: There is no such file, or it is no trace, damaged, or of another format.
    """
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
        return _unpack(content)
    except UnfitError as unfit:
        raise StoreError(f"{path} is damaged, or no trace: {unfit}; {remedy}") from unfit
    except StoreError as error:
        raise StoreError(f"{path}: {error}") from error


def _unpack(content: bytes) -> Trace:
    with explain_content_errors("it is no archive of tables"):
        try:
            with ZipFile(BytesIO(content)) as archive:
                # They are written unpacked, so that none can unpack to more than it is.
                if any(each.compress_type != ZIP_STORED for each in archive.infolist()):
                    raise UnfitError("its tables are packed, which Trace.save never does")
                tables: dict[TableName, pa.Table] = {
                    name: from_bytes(archive.read(file))
                    for name in TABLES
                    if (file := f"{name}.parquet") in archive.namelist()
                }
        # What the archive's own notes may be made to say by damage.
        except (BadZipFile, EOFError, NotImplementedError, RuntimeError, struct.error) as error:
            raise UnfitError(f"its archive cannot be read ({error})") from error
    if "rounds" not in tables:
        raise UnfitError("it holds no rounds.parquet")
    metadata = read_metadata(tables["rounds"].schema.metadata)
    with explain_content_errors("its provenance is not whole"):
        for name in list_tables(metadata):
            if name not in tables:
                raise UnfitError(f"it holds no {name}.parquet, though {name} were saved")
            check_columns(tables[name], name, metadata)
        return make_trace(tables, metadata)
