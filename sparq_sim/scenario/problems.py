"""Problems: what is wrong with a scenario file, each with file, line, field and a remedy."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from sparq_sim.errors import did_you_mean
from sparq_sim.scenario.field_names import list_fields
from sparq_sim.scenario.layers import DEFAULTS, WITHOUT, Layers, find_swept, name_optimizers
from sparq_sim.scenario.tables import (
    ABSENT,
    Keys,
    Table,
    format_value,
    get_entry,
    join_path,
    remove,
    split_path,
)
from sparq_sim.scenario.validation import select_details

__all__ = ["Problems"]


_MOST_TOLD = 200
"""Nobody reads more, and to explain each takes about a millisecond."""


class Problems:
    """Gathers what pydantic finds wrong with the values of *layers*, a line of text for each.

    Args:
        layers: The values, and where they come from.
        model: The model that the values are for.
        whole: What messages call all values together.
        allow_import: Whether a `kind` may name code to import.
    """

    def __init__(
        self,
        layers: Layers,
        model: type[BaseModel],
        *,
        whole: str = "scenario",
        allow_import: bool = False,
    ) -> None:
        self._told: dict[str, tuple[int, int]] = {}
        self._layers = layers
        self._values = layers.values
        self._model = model
        self._whole = whole
        self._allow_import = allow_import
        self._blamed: list[Keys] = []
        self.untold = 0
        """How much is wrong beyond what is told, because it was too much."""

    @property
    def lines(self) -> list[str]:
        """All that is wrong, in the order of reading."""
        told = sorted(self._told, key=lambda line: self._told[line])
        more = [f"and {self.untold:,} more, which are told when these are repaired"]
        return told + (more if self.untold else [])

    def add(self, error: ValidationError, values: Table) -> Table:
        """Add what is new in an *error*, and return *values* without what is wrong in them.

        Args:
            error: What pydantic found wrong with the values.
            values: The values that were validated.
        """
        known = list(self._blamed)
        details = select_details(error)
        self.untold += max(0, len(details) - _MOST_TOLD)
        for detail in details[:_MOST_TOLD]:
            keys, about = self._locate(detail)
            if not any(_overlap(each, about) for each in known):
                where = self._layers.giver(keys).where(keys)
                line = f"{where}: {self._describe(detail, keys)}"
                self._told.setdefault(line, self._layers.order(keys))
            # Without its kind, nothing can be said of a table.
            whole = len(keys) > 1 and keys[-1] == "kind"
            self._blamed.append(about[:-1] if whole else about)
            values = remove(values, keys[:-1] if whole else keys)
        return values

    def _locate(self, detail: ErrorDetails) -> tuple[Keys, Keys]:
        """Find where in the values an error is, and which field it is about."""
        loc = self._find_given([str(key) for key in detail["loc"]])
        if loc[:1] == ["sweep"] and len(loc) > 1:
            for written, path in find_swept(self._values.get("sweep")):
                if path in (split_path(loc[1]), split_path(loc[-1])):
                    return written, path
        keys: Keys = ()
        value: Any = self._values
        for place, key in enumerate(loc):
            inner = get_entry(value, key)
            tag = isinstance(value, dict) and value.get("kind") == key and len(loc) > place + 1
            if inner is ABSENT or (tag and get_entry(value, loc[place + 1]) is not ABSENT):
                # The tag of a union or the name of a type, unless it is what is missing.
                if place == len(loc) - 1 and detail["type"] in ("missing", "scenario"):
                    keys = (*keys, key)
                continue
            keys, value = (*keys, key), inner
        if detail["type"].startswith("union_tag") and isinstance(value, dict):
            keys = (*keys, "kind")
        return keys, keys

    def _find_given(self, loc: list[str]) -> list[str]:
        """Find a field of an optimizer where it was given: with it, or for all of them."""
        if loc[:1] == ["optimizers"] and len(loc) > 2:
            own = get_entry(name_optimizers(self._values.get("optimizers")), loc[1])
            shared = self._values.get(DEFAULTS)
            if get_entry(own, loc[2]) is ABSENT and get_entry(shared, loc[2]) is not ABSENT:
                return [DEFAULTS, *loc[2:]]
        return loc

    def _describe(self, detail: ErrorDetails, keys: Keys) -> str:
        """Return the field, its value and the reason."""
        given: Any = self._values
        for key in keys:
            given = get_entry(given, key)
        # A field that refuses a secret in it says so by the type of its error.
        is_shown = given is not ABSENT and bool(keys) and detail["type"] != "secret"
        value = (format_value(given),) if is_shown else ()
        return ": ".join((join_path(keys) or self._whole, *value, self._explain(detail, keys)))

    def _explain(self, detail: ErrorDetails, keys: Keys) -> str:
        context = detail.get("ctx", {})
        match detail["type"]:
            case "extra_forbidden":
                return f"no such field; {did_you_mean(keys[-1], self._list_fields(keys[:-1]))}"
            case "missing":
                return "missing; add it"
            case "union_tag_invalid":
                kinds = re.findall("'([^']*)'", str(context.get("expected_tags")))
                return f"no such kind; {did_you_mean(str(context.get('tag')), kinds)}"
            case "union_tag_not_found":
                return "missing; say which kind it is"
            case "literal_error" if isinstance(detail["input"], str):
                words = re.findall("'([^']*)'", str(context.get("expected")))
                return f"should be {context['expected']}; {did_you_mean(detail['input'], words)}"
            case "model_type":
                return f"should be a table; its fields are: {', '.join(self._list_fields(keys))}"
            case "tuple_type" | "list_type":
                return "should be a list, in [ ]"
            case "dict_type":
                return "should be a table; see `show`"
        reason = " ".join(detail["msg"].split()).removeprefix("Value error, ")
        if detail["type"] == "scenario" and len(keys) == 3 and keys[-1] == "kind":
            reason += self._suggest_name(keys)
        return reason.replace("Input should", "should")

    def _list_fields(self, keys: Keys) -> list[str]:
        fields = list_fields(self._model, self._values, keys, allow_import=self._allow_import)
        return [*fields, "extends", WITHOUT] if self._whole == "scenario" and not keys else fields

    def _suggest_name(self, keys: Keys) -> str:
        """Ask whether the name of a table without a kind is that of another, misspelt."""
        others = [name for name in self._values[keys[0]] if name != keys[1]]
        close = get_close_matches(keys[1], others, n=1)
        missing = get_entry(get_entry(self._values[keys[0]], keys[1]), "kind") is ABSENT
        return f"; or did you mean {close[0]!r}?" if close and missing else ""


def _overlap(one: Keys, other: Keys) -> bool:
    """Return whether one is within the other; what is wrong with the whole is apart from both."""
    size = min(len(one), len(other))
    if size == 0:
        return one == other or (one or other) in (("rounds",), ("horizon",))
    return one[:size] == other[:size]
