from __future__ import annotations

from dataclasses import replace

from sparq_sim.study.differences import explain_replacement
from sparq_sim.study.store.provenance import describe_play
from tests.study.plays import scenario


def test_a_play_of_plug_ins_that_were_edited_since_names_them() -> None:
    played = scenario()
    then = describe_play(played, "uniform", 0, played.play("uniform"), setting={})
    edited = [
        {**each, "source": "another"} if str(each["class"]).endswith(":Truth") else each
        for each in then.plugins
    ]
    told = explain_replacement(replace(then, plugins=tuple(edited)), played, "uniform")
    assert told is not None
    assert told.startswith("the source of expert 'truth' (")
    assert told.endswith(") has changed since")
