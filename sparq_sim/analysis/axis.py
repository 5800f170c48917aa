"""Axis: what is swept, where all that changes from setting to setting changes together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sparq_sim.fields import is_number
from sparq_sim.study.settings import Setting, format_value, list_paths, list_values, shorten_paths
from sparq_sim.study.store import canonical

__all__ = ["Axis", "find_axis"]


@dataclass(frozen=True)
class Axis:
    """A swept path, and those that are swept side by side with it (`way = "zip"`)."""

    path: str
    """By its values, settings are told apart."""
    name: str
    """What it is called: the last word of the path."""
    values: Sequence[object]
    """All of them, numbers by their size."""

    @property
    def is_numeric(self) -> bool:
        """Whether the values are numbers, and so have an order."""
        return all(is_number(value) for value in self.values)

    def describe(self, setting: Setting) -> str:
        """Return the place of a setting on the axis, as "transit 3".

        Args:
            setting: Swept values, of which one is of the path.
        """
        return f"{self.name} {format_value(setting[self.path])}"


def find_axis(settings: Sequence[Setting]) -> Axis | None:
    """Find the one axis along which settings lie.

    Args:
        settings: Those of a study.

    Returns:
        The axis, named after a path of numbers where there is one; None where there is only one
        setting, or where several things change apart from each other.
    """
    paths = [path for path in list_paths(settings) if len(list_values(settings, path)) > 1]
    if not paths or any(path not in setting for path in paths for setting in settings):
        return None
    count = len({canonical([setting[path] for path in paths]) for setting in settings})
    single = [path for path in paths if len(list_values(settings, path)) == count]
    if len(single) < len(paths):
        return None
    numeric = [path for path in single if all(is_number(setting[path]) for setting in settings)]
    chosen = (numeric or single)[0]
    names = shorten_paths(paths)
    # Paths that share their last word and their values, as losses of two experts, are one thing.
    alike = all(setting[path] == setting[chosen] for path in paths for setting in settings)
    name = chosen.rpartition(".")[2] if alike else names[chosen]
    return Axis(chosen, name, list_values(settings, chosen))
