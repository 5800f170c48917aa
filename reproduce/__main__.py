"""Make every figure and table of README and docs again: `python -m reproduce [NAME ...]`.

A name is that of a study in docs/results/studies.toml or of another part: memory, memory_tuning,
fitting, theory, pictures, drift, ozone, coverage, demo, screenshots, benchmarks. Without names all
is made; what needs a file, a browser or a peer that is not there is left as it is, and a line says
so.
Numbers go to docs/results, pictures to docs/pictures, and from there all goes into the pages,
between the markers that reproduce/pages.py explains. With --render-only only the last is done.

A run that was stopped goes on, and plays of other code are played again; a study of another
scenario than before is refused. --fresh deletes the plays of before.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import chdir
from os.path import expandvars
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from reproduce import ROOT, browser, figures, pages, studies
from sparq_sim.errors import SparqError, did_you_mean

OZONE = "$SPARQ_OZONE"
"""Names the file of real readings."""
BENCHMARKS = ("kernel", "engine", "figure1", "memory")
"""Those that pages show; the others are for `make bench` alone."""


class AbsentError(Exception):
    """Something is not there, so a part is left as it is."""


def make_study(one: studies.Listed, jobs: int | None) -> None:
    """Play a study, and draw it."""
    if one.missing:
        raise AbsentError(", ".join(one.missing))
    study = studies.play_study(one, studies.PLAYS / one.name, jobs)
    figures.draw(one, study)


def theory() -> None:
    """Check the paper's theorems, to docs/results/theory.json."""
    _run("-m", "reproduce.theory")


def pictures() -> None:
    """Draw the environments, to docs/pictures/environments."""
    _run("-m", "reproduce.pictures")


def drift() -> None:
    """Measure how fast environments drift."""
    _write("drift", _run("-m", "reproduce.drift_table"))


def ozone() -> None:
    """Compare the real network with the synthetic one."""
    if not Path(readings := expandvars(OZONE)).is_file():
        raise AbsentError(OZONE)
    _write("ozone", _run("-m", "reproduce.ozone_table", readings))


def coverage() -> None:
    """Measure how often printed intervals hold what they should, by simulation."""
    _write("coverage", _run("-m", "reproduce.coverage"))


def demo() -> None:
    """Do as `make demo` does, in a new folder."""
    with TemporaryDirectory() as folder:
        command = ("-m", "sparq_sim", "run", "synthetic", "--out", "studies/demo", "--into")
        _write("demo", _run(*command, folder=Path(folder)))


def screenshots() -> None:
    """Take the pictures of the report, to docs/pictures/report."""
    if absent := browser.find_absent():
        raise AbsentError(", ".join(map(str, absent)))
    _run("-m", "reproduce.screenshots")


def memory() -> None:
    """Compare optimizers over the ten worlds of memory/, from what is in docs/results."""
    from reproduce.memory import make as make_tables

    make_tables()


def memory_tuning() -> None:
    """Measure what the parts of `sparq-memory` are worth, on worlds to tune on."""
    from reproduce.memory_tuning import make as make_table

    make_table()


def fitting() -> None:
    """Compare ways to find a kernel, over worlds of memory/."""
    from reproduce.fitting import make as make_table

    make_table()


def benchmarks() -> None:
    """Measure ratios against peers, to docs/results/benchmarks.json."""
    from benchmarks.compare import format_duration

    found, absent = dict(studies.read_results("benchmarks")), set()
    for name in BENCHMARKS:
        rows = json.loads(_run("-m", f"benchmarks.{name}", "--json"))
        if peers := {row["missing"] for row in rows if row["missing"]}:
            absent |= peers
            continue
        found[name] = [
            {
                "what": row["what"],
                "ours": format_duration(row["ours"]),
                "peer": format_duration(row["peer"]),
                "ratio": row["ratio"],
                "goal": row["goal"],
                "holds": "yes" if row["holds"] else "no",
            }
            for row in rows
        ]
    studies.write("benchmarks", found)
    if absent:
        raise AbsentError(", ".join(sorted(absent)))


def _run(*command: str | Path, folder: Path = ROOT) -> str:
    """Run Python, and return what it prints."""
    ran = subprocess.run(
        [sys.executable, *command],
        check=False,
        cwd=folder,
        env={**os.environ, "COLUMNS": "80", "OPENBLAS_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        text=True,
    )
    if ran.returncode:
        told = " ".join(Path(word).name for word in command)
        raise SparqError(f"{told} ended with {ran.returncode}: {ran.stdout}")
    return ran.stdout


def _write(name: str, text: str) -> None:
    lines = [line.rstrip() for line in text.rstrip().splitlines()]
    path = studies.RESULTS / f"{name}.txt"
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")


def list_parts(jobs: int | None = None) -> Mapping[str, Callable[[], None]]:
    """Return all parts that can be made, by name, in the order in which they are made."""
    # Benchmarks come last, when nothing else runs.
    others = (
        *(memory, memory_tuning, fitting, theory, pictures),
        *(drift, ozone, coverage, demo, screenshots),
        benchmarks,
    )
    plays = {
        name: lambda one=one: make_study(one, jobs) for name, one in studies.read_list().items()
    }
    return plays | {part.__name__: part for part in others}


def main(arguments: Sequence[str]) -> int:
    """Make what is asked for, or everything, and write the pages."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("names", nargs="*", metavar="NAME", help="of studies and other parts")
    parser.add_argument("--jobs", type=int, help="processes; all cores if not given")
    parser.add_argument("--fresh", action="store_true", help="delete the plays of before")
    parser.add_argument("--render-only", action="store_true", help="make nothing, write the pages")
    asked = parser.parse_args(arguments)
    known = list_parts(asked.jobs)
    if unknown := [name for name in asked.names if name not in known]:
        print(f"nothing is called {unknown[0]!r}: {did_you_mean(unknown[0], known)}")
        return 2
    names = () if asked.render_only else asked.names or [*known]
    with chdir(ROOT):
        if asked.fresh:
            for name in names:
                shutil.rmtree(studies.PLAYS / name, ignore_errors=True)
        # One that fails stops no other: the whole takes long.
        well = [make(name, known[name]) for name in names]
        well += [make("pages", pages.render)]
    return 0 if all(well) else 2


def make(name: str, part: Callable[[], None]) -> bool:
    """Make a part, and say so, or why not; tell whether it went well."""
    begun = perf_counter()
    try:
        part()
        told = f"made in {perf_counter() - begun:.0f} s"
    except AbsentError as absent:
        told = f"left as it is, for {absent} is not there"
    except SparqError as error:
        print(f"{name}: {error}", file=sys.stderr, flush=True)
        return False
    print(f"{name}: {told}", flush=True)
    return True


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
