"""The timeline of a page: every query has its place in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from sparq_sim import Channel
from sparq_sim.messages import Estimate, Query
from sparq_sim.optimizers.uniform import Uniform
from sparq_sim.plugin.expert import Expert, World
from sparq_sim.report.html.density import list_spans, pack_density
from sparq_sim.report.html.lanes import NO_LANE, assign_lanes
from sparq_sim.report.html.replay import pack
from sparq_sim.simulation.records import Fate
from sparq_sim.testing import Asker, Teller
from tests.report.test_replay import shown, unpacked

SLOW: dict[str, Any] = {"kind": "exponential", "mean": 12.0}
OUTAGES = ((3.0, 5.0), (9.5, 12.0))


class Chronicler(Expert):
    """Knows the reward as it was some time ago, and says so."""

    lag: float = 2.5

    async def answer(self, query: Query, world: World) -> Estimate:
        then = max(0.0, world.clock.now - self.lag)
        return Estimate(world.rewards(query.points, then), measured_at=then)


def test_every_point_is_counted_where_there_are_too_many_for_bars(tmp_path: Path) -> None:
    crowd = Channel(transit=SLOW, service=0.5, loss=0.2, patience=40, split=True, outages=OUTAGES)
    (found,) = shown(
        tmp_path,
        rounds=40,
        optimizers={"asker": Asker(batch=30)},
        experts={"sage": (Teller(), crowd)},
    )
    data, film = pack(found), found.film
    assert film is not None
    lanes, replies = data["lanes"], film.trace.replies
    assert lanes["styles"] == ["lanes", "area"]
    own = replies["source"] == "sage"
    area = lanes["areas"][1]
    ended = unpacked(area["ended"]).round()
    for fate, counts in zip(area["fates"], ended, strict=True):
        assert counts.sum() == (own & (replies["fate"] == fate)).sum() > 0
    assert ended.sum() == own.sum() > 200
    # As counted one by one.
    edges = np.arange(ended.shape[1] + 1) * area["width"]
    asked, arrived = replies["asked_at"][own, None], replies["arrived_at"][own, None]
    flying = ((asked < edges[1:]) & (arrived >= edges[:-1])).sum(axis=0)
    assert_array_equal(unpacked(area["flying"]).round(), flying)
    packed = {name: unpacked(column) for name, column in data["replies"].items()}
    assert_array_equal(np.isnan(packed["lane"]), packed["source"] == 1)


spans = st.lists(st.tuples(st.floats(0, 30), st.floats(0, 40)), min_size=1, max_size=120)


@given(spans, spans, st.integers(1, 6))
def test_every_query_has_a_lane_of_its_own_or_its_whole_source_is_an_area(
    one: list[tuple[float, float]], other: list[tuple[float, float]], strips: int
) -> None:
    asked = np.array([start for start, _ in [*one, *other]])
    once = {
        "round": np.ones(len(asked)),
        "source": np.array(["a"] * len(one) + ["b"] * len(other)),
        "asked_at": asked,
        "arrived_at": asked + [lasts for _, lasts in [*one, *other]],
        "measured_at": np.full(len(asked), np.nan),
    }
    lanes = assign_lanes(once, ["a", "b"], strips=[1, strips], before=12.0)
    heights = {"lanes": 1.0, "thin": 0.25}
    taken = 0.0
    for i, (source, style) in enumerate(zip("ab", lanes.styles, strict=True)):
        own = once["source"] == source
        assert (lanes.of[own] == NO_LANE).all() == (style == "area")
        if style == "area":
            taken += 6
            continue
        taken += heights[style] * lanes.counts[i] * (1 if i == 0 or strips == 1 else strips / 4)
        for lane in range(lanes.counts[i]):
            at = np.flatnonzero(own & (lanes.of == lane))
            order = at[np.argsort(asked[at], kind="stable")]
            assert (asked[order][1:] > once["arrived_at"][order][:-1]).all()
    assert taken <= 30


def test_the_time_of_points_is_shared_among_their_phases() -> None:
    points = {
        "query": np.array([1, 2]),
        "asked_at": np.array([0.0, 1.0]),
        "served_at": np.array([1.0, np.nan]),
        "sent_at": np.array([2.5, np.nan]),
        "arrived_at": np.array([4.0, 3.0]),
        "fate": np.array(["answered", "late"]),
    }
    packed = pack_density(points, list_spans(points, {}), tuple(Fate), width=1.0)
    assert unpacked(packed["flying"]).tolist() == [1, 2, 2, 2, 1]
    service, transit = unpacked(packed["shares"])
    assert_allclose(service, [0, 0.5, 0.25, 0, 0], atol=0.005)
    assert_allclose(transit, [0, 0, 0.25, 1, 0], atol=0.005)
    assert dict(zip(packed["fates"], unpacked(packed["ended"]).tolist(), strict=True)) == {
        "answered": [0, 0, 0, 0, 1],
        "late": [0, 0, 0, 1, 0],
    }


def test_values_older_than_their_query_have_lanes_from_when_they_were_measured(
    tmp_path: Path,
) -> None:
    (found,) = shown(
        tmp_path,
        optimizers={"asker": Asker()},
        experts={"sage": (Chronicler(), Channel(transit=0.5))},
    )
    data = pack(found)
    packed = {name: unpacked(column) for name, column in data["replies"].items()}
    own = (packed["source"] == 1) & (packed["asked_at"] > 3) & (packed["fate"] == 0)
    assert_allclose((packed["asked_at"] - packed["measured_at"])[own], 2.5, atol=1e-5)
    assert not data["lanes"]["instant"]
    assert data["lanes"]["counts"][1] == 4
    for lane in range(4):
        at = own & (packed["lane"] == lane)
        order = np.argsort(packed["asked_at"][at])
        starts, ends = packed["measured_at"][at][order], packed["arrived_at"][at][order]
        assert (starts[1:] > ends[:-1]).all()


def test_outages_are_those_that_the_channels_declare(tmp_path: Path) -> None:
    (asked, calm) = shown(
        tmp_path,
        optimizers={"asker": Asker(), "calm": Uniform()},
        experts={"sage": (Teller(), Channel(outages=OUTAGES))},
        feedback=Channel(noise=0.1, outages=((1.0, 2.0),)),
    )
    assert pack(asked)["lanes"]["outages"] == [((1.0, 2.0),), OUTAGES]
    assert pack(calm)["lanes"]["outages"] == [((1.0, 2.0),)]


@pytest.mark.parametrize(
    ("expert", "transit", "told"),
    [
        (Teller(), 0.0, "Every answer arrives in the round in which it is asked; 2 of 17 points"),
        (Teller(), 0.5, ""),
        (Chronicler(), 0.0, ""),
    ],
)
def test_only_what_takes_no_time_and_is_not_old_is_instant(
    tmp_path: Path, expert: Expert, transit: float, told: str
) -> None:
    (found,) = shown(
        tmp_path,
        rounds=6,
        optimizers={"asker": Asker()},
        experts={"sage": (expert, Channel(transit=transit, loss=0.3))},
    )
    assert pack(found)["lanes"]["instant"].removesuffix(" had none.") == told
