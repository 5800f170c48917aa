from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sparq_sim.plugin.registry import list_names
from sparq_sim.report.gather import gather
from sparq_sim.report.looks import BUNDLED, find_look, find_looks
from sparq_sim.study.results import Results

NAMES = st.text(max_size=12)


def test_every_kind_that_comes_with_it_has_a_look_of_its_own() -> None:
    assert set(BUNDLED) == set(list_names("optimizer"))
    assert len({look.line for look in BUNDLED.values()}) == len(BUNDLED)


@given(st.dictionaries(NAMES, NAMES | st.sampled_from(list(BUNDLED)), max_size=20))
def test_no_two_optimizers_of_a_study_look_alike(kinds: dict[str, str]) -> None:
    looks = find_looks(kinds)
    assert looks.keys() == kinds.keys()
    assert len(set(looks.values())) == len(kinds)


@given(st.lists(st.sampled_from(list(BUNDLED)), unique=True), NAMES)
def test_a_kind_looks_the_same_in_every_study(kinds: list[str], other: str) -> None:
    looks = find_looks({**{f"my {kind}": kind for kind in kinds}, "theirs": other})
    assert {kind: looks[f"my {kind}"] for kind in kinds} == {kind: BUNDLED[kind] for kind in kinds}


@given(NAMES)
def test_what_others_make_has_the_line_of_nothing_bundled(kind: str) -> None:
    if kind not in BUNDLED:
        assert find_look(kind).line not in {look.line for look in BUNDLED.values()}
    assert find_look(kind) == find_look(kind)


def test_of_one_kind_the_first_has_its_look_and_the_others_have_free_colours() -> None:
    names = dict.fromkeys(("greedy", "chain", "exact", "random", "newest"), "sparq-gp-ucb")
    looks = find_looks({**names, "tv": "tv-gp-ucb"})
    assert looks["greedy"] == find_look("sparq-gp-ucb")
    assert looks["tv"] == find_look("tv-gp-ucb")
    assert len({look.colour for look in looks.values()}) == len(looks)
    assert not {looks[name].line for name in names if name != "greedy"} & {
        look.line for look in BUNDLED.values()
    }


def test_a_study_tells_the_kinds_of_its_optimizers(study: Results) -> None:
    charts = gather(study, replays=False).charts
    assert charts.kinds["careless"] == "uniform"
    assert charts.look("careless") == find_look("uniform")
