"""Place over time: where each optimizer played, on the true reward, and what that means in words.

`read_places` reads it from a study; the page and the figures for print draw it.
"""

from sparq_sim.report.place.data import (
    Ground,
    Paint,
    PlaceAxis,
    PlacePicture,
    PlaceRow,
    find_most_telling,
    shade,
)
from sparq_sim.report.place.reading import read_places

__all__ = [
    "Ground",
    "Paint",
    "PlaceAxis",
    "PlacePicture",
    "PlaceRow",
    "find_most_telling",
    "read_places",
    "shade",
]
