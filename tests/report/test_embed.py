from __future__ import annotations

import json
from math import inf, nan

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sparq_sim.errors import mask_invisible
from sparq_sim.report.html.embed import embed

LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
DATA = st.recursive(
    LEAVES.filter(lambda leaf: leaf not in (inf, -inf)),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(DATA)
def test_what_is_embedded_is_read_again(data: object) -> None:
    assert json.loads(embed(data)) == data


@given(st.text(alphabet="<>&!-/scriptSCRIPT[]\"'\u2028\u2029\\ "))
def test_nothing_embedded_can_end_its_element_or_begin_another(text: str) -> None:
    written = embed({text: [text]})
    assert not set(written) & set("<>&\u2028\u2029")
    assert json.loads(written) == {text: [text]}


def test_numbers_that_json_lacks_are_null() -> None:
    assert embed([nan, inf, -inf, 1.5, np.float64(nan)]) == "[null,null,null,1.5,null]"


def test_arrays_are_lists() -> None:
    assert embed({"a": np.array([1.0, nan]), "b": (np.int64(2),)}) == '{"a":[1.0,null],"b":[2]}'


def test_half_a_character_can_be_embedded() -> None:
    assert json.loads(embed("\ud800")) == "\ud800"
    assert embed("\ud800").encode("ascii")


def test_what_turns_or_hides_text_is_marked() -> None:
    assert mask_invisible("a\u202eb\x1b[0m\x00\ud800") == "a\ufffdb\ufffd[0m\ufffd\ufffd"
    assert mask_invisible("zwölf\tχ²\n") == "zwölf\tχ²\n"
