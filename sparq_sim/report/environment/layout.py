"""Layout of a portrait: which of its data are shown in which panel, for all renderers alike."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan
from typing import Literal

import numpy as np

from sparq_sim.arrays import Matrix, Values
from sparq_sim.report.environment.data import FRAMES, Fields, Places, Portrait, Slices
from sparq_sim.report.palette import BEST, DRIFT, INK, MEAN, PALE, SNAPSHOTS

__all__ = [
    "REWARD",
    "Curve",
    "Panel",
    "Row",
    "colour_limits",
    "find_ends",
    "layout",
    "make_snapshot",
]

REWARD = "reward"
"""Label of rewards."""
_TIME = "time (clock units)"


@dataclass(frozen=True, eq=False)
class Curve:
    """A line, or dots."""

    x: Values
    """Places across, (n,)."""
    y: Values
    """Places up, (n,)."""
    colour: str
    """As #rrggbb."""
    name: str = ""
    """For the legend; nothing for none."""
    style: Literal["line", "thin", "steps", "dots", "mark"] = "line"
    """How it is drawn."""


@dataclass(frozen=True, eq=False)
class Panel:
    """One pair of axes: *curves*, over a field of rewards or sites coloured by theirs, if any."""

    title: str
    """Above it."""
    labels: tuple[str, str]
    """Of the axes, across and up."""
    curves: tuple[Curve, ...]
    """Over all else."""
    field: tuple[Values, Values, Matrix] | None = None
    """Across, up, and rewards (up, across)."""
    places: Places | None = None
    """With the rewards of one time: (1, sites)."""

    @property
    def coloured(self) -> bool:
        """Whether colours stand for rewards in it."""
        return self.field is not None or self.places is not None


@dataclass(frozen=True, eq=False)
class Row:
    """Panels side by side."""

    height: float
    """As a share of the width."""
    panels: tuple[Panel, ...]
    """From left to right."""


def layout(portrait: Portrait) -> tuple[Row, ...]:
    """Return the rows of panels that show a portrait.

    Args:
        portrait: What is shown.
    """
    foot = Row(0.22, (_rewards_panel(portrait), _drift_panel(portrait)))
    match portrait.view:
        case Slices(axes=axes) if len(axes) == 1:
            heat, snapshots = _slice_panel(portrait, 0), _snapshots_panel(portrait)
            return Row(0.36, (heat,)), Row(0.26, (snapshots,)), foot
        case Slices(axes=axes):
            panels = [_slice_panel(portrait, number) for number in range(len(axes))]
            rows = [panels[i : i + 3] for i in range(0, len(panels), 3)]
            return *(Row(0.24, tuple(row)) for row in rows), foot
        case Fields():
            return Row(0.28, _snapshots(portrait)), foot
        case Places():
            return Row(0.28, _snapshots(portrait)), Row(0.24, (_sites_panel(portrait),)), foot


def _snapshots(portrait: Portrait) -> tuple[Panel, ...]:
    stride = FRAMES // len(SNAPSHOTS)
    return tuple(make_snapshot(portrait, frame) for frame in range(stride - 1, FRAMES, stride))


def make_snapshot(portrait: Portrait, frame: int) -> Panel:
    """Return the panel of the reward over a plane or over sites at one time.

    Args:
        portrait: What is shown.
        frame: Which of its frames, from 0.
    """
    number = portrait.frames[frame]
    title = f"t = {portrait.times[number]:.4g}"
    names = (*portrait.coordinates, "")
    match portrait.view:
        case Fields() as view:
            x, y = portrait.best_points.T
            here = Curve(x[[number]], y[[number]], INK, "best", "mark")
            ever = Curve(x, y, INK, "best at another time", "dots")
            field = (*view.axes, view.rewards[frame])
            return Panel(title, (names[0], names[1]), (ever, here), field=field)
        case Places() as view:
            across, up = _across_and_up(portrait.coordinates)
            # Sites on a line have no second coordinate, and are drawn at 0.
            points = np.pad(view.points, [(0, 0), (0, 1)])[:, [across, up]]
            best = np.pad(portrait.best_points[number], (0, 1))
            here = Curve(best[[across]], best[[up]], INK, "best", "mark")
            places = Places(points, view.names, view.rewards[[number]])
            return Panel(title, (names[across], names[up]), (here,), places=places)
        case Slices():
            raise ValueError("slices show all moments at once")


def _across_and_up(coordinates: tuple[str, ...]) -> tuple[int, int]:
    """Find which coordinates a map shows: the first two, but north up."""
    first = coordinates[0].casefold()
    return (1, 0) if first.startswith("lat") and len(coordinates) > 1 else (0, 1)


def _slice_panel(portrait: Portrait, number: int) -> Panel:
    assert isinstance(portrait.view, Slices)
    axis, rewards = portrait.view.axes[number], portrait.view.rewards[number]
    title = "reward over time" if len(portrait.view.axes) == 1 else "slice through the best point"
    best = Curve(portrait.times, portrait.best_points[:, number], INK, "best", "dots")
    field = portrait.times, axis, rewards.T
    return Panel(title, (_TIME, portrait.coordinates[number]), (best,), field=field)


def _snapshots_panel(portrait: Portrait) -> Panel:
    assert isinstance(portrait.view, Slices)
    (axis,), (rewards,) = portrait.view.axes, portrait.view.rewards
    numbers = portrait.frames[FRAMES // len(SNAPSHOTS) - 1 :: FRAMES // len(SNAPSHOTS)]
    curves = [
        Curve(axis, rewards[number], shade, f"t = {portrait.times[number]:.4g}")
        for number, shade in zip(numbers, SNAPSHOTS, strict=True)
    ]
    tops = [
        Curve(portrait.best_points[[n], 0], portrait.best_rewards[[n]], shade, style="mark")
        for n, shade in zip(numbers, SNAPSHOTS, strict=True)
    ]
    return Panel("snapshots", (portrait.coordinates[0], REWARD), (*curves, *tops))


def _sites_panel(portrait: Portrait) -> Panel:
    assert isinstance(portrait.view, Places)
    sites = portrait.view.rewards.shape[1]
    # One curve with gaps for all sites: there may be many.
    x = np.tile(np.append(portrait.times, nan), sites)
    y = np.concatenate([np.append(row, nan) for row in portrait.view.rewards.T])
    every = Curve(x, y, PALE, "sites", "thin")
    best = Curve(portrait.times, portrait.best_rewards, BEST, "best")
    return Panel("each site", (_TIME, REWARD), (every, best))


def _rewards_panel(portrait: Portrait) -> Panel:
    best = Curve(portrait.times, portrait.best_rewards, BEST, "best")
    mean = Curve(portrait.times, portrait.mean_rewards, MEAN, "mean over the domain")
    return Panel("best and mean", (_TIME, REWARD), (best, mean))


def _drift_panel(portrait: Portrait) -> Panel:
    changes = Curve(portrait.times[1:], portrait.drift, DRIFT, style="steps")
    return Panel("drift: largest change per unit of time", (_TIME, "drift"), (changes,))


def colour_limits(portrait: Portrait) -> tuple[float, float]:
    """Return the rewards between which colours differ, so that rare extremes do not dim the rest.

    Args:
        portrait: What is shown.
    """
    numbers = np.concatenate([np.ravel(each) for each in portrait.view.rewards])
    low, high = np.quantile(numbers, [0.01, 0.995]).tolist()
    return low, high


def find_ends(axis: Values) -> tuple[float, float]:
    """Return where an axis begins and ends.

    Args:
        axis: Places along it, in order: (n,).
    """
    return float(axis[0]), float(axis[-1])
