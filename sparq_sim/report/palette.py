"""Palette: colours, dashes and markers that tell optimizers, references and rewards apart."""

from __future__ import annotations

from typing import Any

__all__ = [
    "BADNESS",
    "BEST",
    "CHARGES",
    "DRIFT",
    "GREY",
    "GRID",
    "GROUND",
    "INK",
    "MEAN",
    "MEANINGS",
    "PALE",
    "PRINT_DASHES",
    "PRINT_LINE_DASHES",
    "PRINT_MARKERS",
    "PRINT_REFERENCE_DASHES",
    "REGRETS",
    "REWARDS",
    "SCREEN_DASHES",
    "SCREEN_MARKERS",
    "SCREEN_REFERENCE_DASHES",
    "SERIES",
    "SHARES",
    "SNAPSHOTS",
    "SVG_DASHES",
    "SVG_MARKERS",
    "colour_of",
    "spread_shares",
]

# Found by search, near the hues of Okabe and Ito (2008): any two colours of SERIES, and any two of
# MEANINGS, are at least 10 apart by CIEDE2000 for readers with any kind of colour vision, and one
# of each for most readers. A page names them --series-1 and --meaning-1, and so on; its style sheet
# has them for both themes.
SERIES = (
    *("#0d5bc0", "#ce3d08", "#11a480", "#aa73a3"),
    *("#d87b00", "#4390ff", "#7f7646", "#4e4f5d"),
)
"""Colours of optimizers: see `looks`."""
MEANINGS = (
    *("#5b2bb1", "#8c3e03", "#027588", "#ce1d5a"),
    *("#4ba11f", "#8b6cf0", "#532121", "#80929c"),
)
"""Colours of all that is no optimizer: what is believed, played, answered or best, and what
becomes of queries, energy and packets."""
SHARES = (
    *("#440154", "#481c6e", "#453581", "#3d4d8a", "#33628d", "#2b748e"),
    *("#24878e", "#1f9a8a", "#26ad81", "#42be71", "#69cd5b", "#9bd93c"),
)
"""Colours of the parts of a whole, in their order: viridis without what paper swallows. A page
names them --share-1 to --share-12; where it is dark, they are brighter."""
SCREEN_MARKERS = (
    *("circle", "square", "triangle-up", "diamond"),
    *("triangle-down", "cross", "x", "star"),
)
"""Markers of optimizers, as Plotly names them: they do without colour."""
PRINT_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
"""The same for matplotlib."""
SVG_MARKERS = (
    "M9 6a4 4 0 1 0 8 0a4 4 0 1 0-8 0Z",
    "M9.5 2.5h7v7h-7Z",
    "M13 1.5l4.5 8h-9Z",
    "M13 1.2l4.8 4.8l-4.8 4.8l-4.8-4.8Z",
    "M13 10.5l-4.5-8h9Z",
    "M11.4 1.5h3.2v2.9h2.9v3.2h-2.9v2.9h-3.2v-2.9h-2.9v-3.2h2.9Z",
    "M10.5 1.5l2.5 2.5l2.5-2.5l2 2l-2.5 2.5l2.5 2.5l-2 2l-2.5-2.5l-2.5 2.5l-2-2l2.5-2.5l-2.5-2.5Z",
    "M13 .8l1.5 3.3l3.6.4l-2.7 2.4l.8 3.6l-3.2-1.8l-3.2 1.8l.8-3.6l-2.7-2.4l3.6-.4Z",
)
"""The same as outlines in a box of 26 by 12."""
SCREEN_DASHES = ("solid", "dash", "dot", "dashdot")
"""Lines of optimizers, as Plotly names them."""
PRINT_DASHES: tuple[Any, ...] = ("-", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)))
"""The same for matplotlib."""
SVG_DASHES = ("none", "5 2.5", "1.5 2.5", "5 2.5 1.5 2.5")
"""The same as SVG has them."""
SCREEN_REFERENCE_DASHES = ("dash", "dashdot", "dot")
"""Lines of the reference levels, as Plotly names them."""
PRINT_REFERENCE_DASHES: tuple[Any, ...] = ((0, (5, 2)), (0, (6, 1.5, 1, 1.5)), (0, (1, 1.5)))
"""The same for matplotlib."""
PRINT_LINE_DASHES: tuple[Any, ...] = ((0, (9, 2)), (0, (9, 2, 1, 2)), (0, (9, 2, 1, 2, 1, 2)))
"""Lines that a user adds to a figure."""

INK, GREY, PALE, GRID = "#222222", "#6b6b6b", "#bdbdbd", "#eeeeee"
"""Text and axes; what is less important; lines of many sites; grid lines."""
REGRETS = "cividis"
"""Colour map of regrets; reversed, so that bright is good."""
REWARDS = "viridis"
"""Colour map of rewards."""
CHARGES = "cividis"
"""Colour map of what batteries have left; bright is full."""
GROUND = ("#f7f7f2", "#dfe8e7", "#c7d9db", "#b0cad0", "#98bbc4")
"""Colours of true rewards below what was played, low to high: even in OKLab's lightness. A page
names them --ground-1 to --ground-5; where it is dark, they are dark."""
BADNESS = ("#005191", "#4c3e99", "#762682", "#9c1f57", "#af2f02")
"""Colours of rounds on that ground, from no regret on: each has a contrast of 3 to all of it, and
readers who do not tell red from green see blue to brown. A page names them --regret-1 to
--regret-5; where it is dark, they are bright."""
BEST, MEAN, DRIFT = MEANINGS[3], MEANINGS[0], MEANINGS[2]
"""Colours of the best reward, the mean reward and the drift of an environment."""
SNAPSHOTS = ("#440154", "#355f8d", "#22a884", "#b8a90d")
"""Colours of an environment at four times, early to late: viridis, darker."""

_NETWORK = {
    # What energy is used for; phases in the life of a query have the colour of what they use.
    "measure": 3,
    "send": 2,
    "uplink": 2,
    "receive": 1,
    "downlink": 1,
    "listen": 6,
    "queue": 5,
    "sleep": 8,
    "asleep": 8,
    "compute": 7,
    "backoff": 7,
    "lost": 4,
    # What becomes of packets.
    "delivered": 3,
    "faded": 8,
    "collided": 2,
    "gateway full": 5,
    "gateway sending": 6,
    "node busy": 7,
    "duty cycle": 1,
    "node dead": 0,
    "channel busy": 4,
}


def colour_of(name: str) -> int:
    """Return which colour of `MEANINGS`, from 1, energy, phases or packets have; 0 is ink.

    Args:
        name: A use of energy, a phase in the life of a query, or a fate of packets; any other has
            the last colour.
    """
    return _NETWORK.get(name, len(MEANINGS))


def spread_shares(count: int) -> list[int]:
    """Return which colours of `SHARES`, from 1, the parts of a whole have, in their order.

    Args:
        count: How many parts there are; of more than 12, neighbours share colours.
    """
    step = len(SHARES) / max(1, count)
    return [1 + round((place + 0.5) * step - 0.5) for place in range(count)]
