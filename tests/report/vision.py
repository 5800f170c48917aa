"""Vision: colours as readers see them, and how far apart two of them are."""

from __future__ import annotations

from math import atan2, cos, degrees, exp, hypot, radians, sin, sqrt
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["VISIONS", "Lab", "contrast", "difference", "see"]

Lab: TypeAlias = tuple[float, float, float]
"""L*, a* and b*, under the white of D65."""

# Machado, Oliveira and Fernandes (2009), at severity 1, in linear RGB.
VISIONS = {
    "normal": np.eye(3),
    "protanopia": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "deuteranopia": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
    "tritanopia": np.array(
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ]
    ),
}
"""What a reader sees of linear RGB, by kind of vision."""
# IEC 61966-2-1.
_XYZ = np.array(
    [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.0721750],
        [0.0193339, 0.1191920, 0.9503041],
    ]
)
_WHITE = np.array([0.95047, 1.0, 1.08883])


def see(colour: str, vision: str = "normal") -> Lab:
    """Return what a reader sees of a colour.

    Args:
        colour: As `#rrggbb`.
        vision: One of `VISIONS`.
    """
    seen = np.clip(VISIONS[vision] @ _linear(colour), 0.0, 1.0)
    x, y, z = (float(_lighten(each)) for each in _XYZ @ seen / _WHITE)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colours, from 1 to 21, as WCAG 2 defines it.

    Args:
        one: As `#rrggbb`.
        other: Likewise.
    """
    dark, bright = sorted(float(_XYZ[1] @ _linear(each)) for each in (one, other))
    return (bright + 0.05) / (dark + 0.05)


def difference(one: Lab, other: Lab) -> float:
    """Return how far apart two colours are: CIEDE2000, of which 1 is barely seen.

    Args:
        one: What is seen of a colour.
        other: Likewise.
    """
    # In the words of Sharma, Wu and Dalal (2005).
    (l1, a1, b1), (l2, a2, b2) = one, other
    grey = 1.5 - 0.5 * _seventh((hypot(a1, b1) + hypot(a2, b2)) / 2)
    c1, c2 = hypot(grey * a1, b1), hypot(grey * a2, b2)
    h1, h2 = degrees(atan2(b1, grey * a1)) % 360, degrees(atan2(b2, grey * a2)) % 360
    turn = (h2 - h1 + 180) % 360 - 180 if c1 * c2 else 0.0
    hue = (h1 + turn / 2) % 360 if c1 * c2 else h1 + h2
    light, chroma = (l1 + l2) / 2 - 50, (c1 + c2) / 2
    weight = (
        1
        - 0.17 * cos(radians(hue - 30))
        + 0.24 * cos(radians(2 * hue))
        + 0.32 * cos(radians(3 * hue + 6))
        - 0.20 * cos(radians(4 * hue - 63))
    )
    lightness = (l2 - l1) / (1 + 0.015 * light**2 / sqrt(20 + light**2))
    colourfulness = (c2 - c1) / (1 + 0.045 * chroma)
    tint = 2 * sqrt(c1 * c2) * sin(radians(turn / 2)) / (1 + 0.015 * chroma * weight)
    blue = -2 * _seventh(chroma) * sin(radians(60 * exp(-(((hue - 275) / 25) ** 2))))
    return sqrt(lightness**2 + colourfulness**2 + tint**2 + blue * colourfulness * tint)


def _seventh(chroma: float) -> float:
    return sqrt(chroma**7 / (chroma**7 + 25**7))


def _linear(colour: str) -> NDArray[np.float64]:
    shares = np.array([int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)])
    return np.where(shares <= 0.04045, shares / 12.92, ((shares + 0.055) / 1.055) ** 2.4)


def _lighten(share: float) -> float:
    return np.cbrt(share) if share > 216 / 24389 else (24389 / 27 * share + 16) / 116
