"""Sampling: which mutants of the core are tried, spread over its rooms by their size."""

from __future__ import annotations

import ast
import random
from collections import defaultdict
from itertools import islice
from pathlib import Path

from mutants.operators import Mutant, find_mutants

__all__ = ["draw_sample", "find_core_files", "name_room"]

_FILES = ("arrays.py", "domain.py", "fields.py", "messages.py")
_ROOMS = ("simulation", "study", "gp")


def find_core_files(root: Path) -> list[str]:
    """Return the source files of the core, relative to the root of the project.

    Args:
        root: Of the project.
    """
    package = root / "sparq_sim"
    found = [package / name for name in _FILES]
    for room in _ROOMS:
        found += sorted((package / room).rglob("*.py"))
    return [path.relative_to(root).as_posix() for path in found]


def name_room(file: str) -> str:
    """Return the room in which a *file* of the core lies.

    Args:
        file: Relative to the root of the project.
    """
    folders = Path(file).parent.parts[1:]
    return "/".join(folders) or "sparq_sim"


def draw_sample(root: Path, size: int, seed: int) -> list[Mutant]:
    """Return *size* mutants of the core, as many of each room as its share of lines of code.

    Args:
        root: Of the project.
        size: How many.
        seed: Of the choice within each room.
    """
    mutants: dict[str, list[Mutant]] = defaultdict(list)
    lines: dict[str, int] = defaultdict(int)
    for file in find_core_files(root):
        source = (root / file).read_text(encoding="utf-8")
        room = name_room(file)
        mutants[room] += find_mutants(source, file)
        lines[room] += sum(1 for line in source.splitlines() if line.strip())
    rng = random.Random(seed)
    drawn = []
    for room, count in _share_out(size, lines).items():
        rng.shuffle(mutants[room])
        drawn += [*islice((each for each in mutants[room] if _compiles(each, root)), count)]
    return drawn


def _compiles(mutant: Mutant, root: Path) -> bool:
    source = (root / mutant.file).read_text(encoding="utf-8")
    try:
        changed = ast.parse(mutant.apply(source))
    except SyntaxError:
        return False
    return ast.dump(changed) != ast.dump(ast.parse(source))


def _share_out(size: int, lines: dict[str, int]) -> dict[str, int]:
    """Share *size* out by *lines*, what is left to the largest remainders."""
    total = sum(lines.values())
    exact = {room: size * count / total for room, count in lines.items()}
    shares = {room: int(share) for room, share in exact.items()}
    by_rest = sorted(exact, key=lambda room: (shares[room] - exact[room], room))
    for room in by_rest[: size - sum(shares.values())]:
        shares[room] += 1
    return shares
