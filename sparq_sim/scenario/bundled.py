"""Bundled scenarios: the files that installed packages bring, found by name."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from sparq_sim.errors import ScenarioError, did_you_mean
from sparq_sim.plugin.origins import find_entry_points

__all__ = ["find_bundled", "find_file", "find_homes"]

_GROUP = "sparq_sim.scenarios"
"""The entry points that name packages with scenario files in them."""


def find_bundled() -> dict[str, Path]:
    """Return the file of each scenario that installed packages bring, by name."""
    return {name: claims[0] for name, claims in sorted(_find_claims()[0].items())}


def find_file(source: str | Path) -> Path:
    """Return the file of a scenario.

    Args:
        source: The path of the file, which need not exist, or the name of a bundled scenario.

    Raises:
        ScenarioError: No file and no scenario has this name, or several scenarios have.
    """
    path = Path(source)
    if isinstance(source, Path) or path.suffix == ".toml" or path.is_absolute():
        return path
    claims, broken = _find_claims()
    if len(claims.get(source, ())) > 1:
        owners = ", ".join(str(file) for file in claims[source])
        raise ScenarioError(f"{source}: is claimed twice: {owners}; give the file itself")
    if source in claims:
        return claims[source][0]
    # A folder of results is often called as its scenario.
    if path.is_file():
        return path
    hint = "; ".join([did_you_mean(source, claims), *broken])
    raise ScenarioError(f"{source}: no such file, and no scenario has this name; {hint}")


def find_homes() -> list[Path]:
    """Return the folders of all installed packages of scenarios."""
    return [*_find_homes()[0].values()]


def _find_homes() -> tuple[dict[str, Path], list[str]]:
    """Return the folder of each package of scenarios, and which packages cannot be loaded."""
    homes: dict[str, Path] = {}
    broken: list[str] = []
    for package in sorted({entry.value for entry in find_entry_points(_GROUP)}):
        try:
            homes[package] = Path(str(files(package)))
        except (Exception, SystemExit) as error:
            broken.append(f"{package} cannot be loaded: {type(error).__name__}: {error}")
    return homes, broken


def _find_claims() -> tuple[dict[str, list[Path]], list[str]]:
    """Return the files that claim each name, and which packages cannot be loaded."""
    claims: dict[str, list[Path]] = {}
    homes, broken = _find_homes()
    for home in homes.values():
        for file in sorted(home.rglob("*.toml")):
            claims.setdefault(file.relative_to(home).with_suffix("").as_posix(), []).append(file)
    return claims, broken
