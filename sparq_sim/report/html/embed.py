"""Embedding: data as JSON inside a page."""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import isfinite
from typing import Any

import numpy as np
from markupsafe import Markup

__all__ = ["embed"]


def embed(data: object) -> Markup:
    """Return data as JSON for a script element of type application/json.

    Nothing in it can end the element, begin a comment or break a line of a script.

    Args:
        data: Mappings, lists, arrays, texts and numbers; NaN and inf become null.
    """
    text = json.dumps(_plain(data), allow_nan=False, separators=(",", ":"))  # all in ASCII
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


def _plain(thing: Any) -> Any:
    match thing:
        case Mapping():
            return {str(name): _plain(value) for name, value in thing.items()}
        case list() | tuple():
            return [_plain(value) for value in thing]
        case np.ndarray() | np.generic():
            return _plain(thing.tolist())
        case float() if not isfinite(thing):
            return None
    return thing
