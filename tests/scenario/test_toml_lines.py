"""Each key of a TOML text is found in its line."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sparq_sim.scenario.tables import join_path, split_path
from sparq_sim.scenario.toml_lines import find_lines

RICH = '''\
top = 1
"quoted.key" = 2
a.b.c = 3
text = """
not.a.key = 4
[nor.a.table] \\"""
""""
literal = \'\'\'
[neither]
\'\'\'
inline = { x = 1, y.z = [1, { deep = "}" }] } # comment = 5
many = [ # ]
  1,
  [2, 3],
  { in = 4 },
]
[table]
key = 'a # b'
[table."in ner".more]
date = 1979-05-27 07:32:00
[[array]]
one = 1
[[array.sub]]
two = 2
[[array.sub]]
two = 3
[[array]]
one = 4
[array.plain]
three = 5
'''


def leaves(value: Any, keys: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, (*keys, key))
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from leaves(inner, (*keys, str(place)))
    else:
        yield keys


def test_each_key_is_found_in_its_line() -> None:
    found = find_lines(RICH, "text")
    assert set(leaves(tomllib.loads(RICH))) <= found.keys()
    expected = {
        "top": 1,
        '"quoted.key"': 2,
        "a.b": 3,
        "text": 4,
        "literal": 8,
        "inline.y.z.1.deep": 11,
        "many.0": 13,
        "many.1.1": 14,
        "many.2.in": 15,
        "table.key": 18,
        'table."in ner".more.date': 20,
        "array.0.one": 22,
        "array.0.sub.1.two": 26,
        "array.1.one": 28,
        "array.1.plain.three": 30,
    }
    assert {path: found[split_path(path)] for path in expected} == expected
    assert not any("nor" in keys or "neither" in keys for keys in found)


TOML = st.recursive(
    st.integers() | st.booleans() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=12,
)


def as_toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{join_path([k])} = {as_toml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[\n" + ",\n".join(map(as_toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


@given(st.dictionaries(st.text(), TOML, max_size=5))
def test_whatever_tomllib_reads_the_scanner_has_lines_for(table: dict[str, Any]) -> None:
    text = "".join(f"{join_path([key])} = {as_toml(value)}\n" for key, value in table.items())
    text = text.replace("\x7f", "")
    try:
        read = tomllib.loads(text)
    except tomllib.TOMLDecodeError:  # Two keys that differed in what was taken out.
        return
    assert set(leaves(read)) <= find_lines(text, "text").keys()
