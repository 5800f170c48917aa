from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from sparq_sim import SparqError
from sparq_sim.analysis.criteria import REGRET, REWARD, Criterion
from sparq_sim.analysis.summary import summarize
from sparq_sim.report.data import ChartData
from sparq_sim.report.html.cost import cost_charts
from sparq_sim.report.html.prices import price_charts
from sparq_sim.report.print import draw, kinds
from sparq_sim.study.settings import Setting
from sparq_sim.study.store import StoredSummary
from tests.analysis.results import make_plays

GOOD, BAD = [0.10, 0.12, 0.08, 0.11, 0.09, 0.10], [0.30, 0.28, 0.31, 0.30, 0.29, 0.32]
PRICE = "experts.sage.channel.cost_per_point"


def charted(
    *plays: StoredSummary, settings: Sequence[Setting] = ({},), criterion: Criterion = REGRET
) -> ChartData:
    return ChartData(
        optimizers=list(dict.fromkeys(play.optimizer for play in plays)),
        found=plays,
        summaries=summarize(plays, criterion),
        settings=settings,
        criterion=criterion,
    )


PLAYS = [*make_plays("asks", GOOD, spent=40.0), *make_plays("<b>nobody", BAD)]


def test_the_caption_tells_who_is_best_up_to_which_price_and_how_surely() -> None:
    (chart,) = price_charts(charted(*PLAYS))
    assert "Best in the mean: “asks” up to 0.05 (0.0" in chart.caption
    assert "then <b>nobody." in chart.caption
    (figure,) = chart.figures
    (dot,) = [trace for trace in figure["data"] if "text" in trace]
    assert dot["x"] == [pytest.approx(0.05)]
    assert dot["text"] == ["from 0.05: &lt;b&gt;nobody"]


def test_the_plane_has_dots_for_plays_too_few_for_an_interval() -> None:
    for plays, dots in ((PLAYS, 0), ([play for play in PLAYS if play.replication < 3], 6)):
        (chart,) = cost_charts(charted(*plays))
        spreads = [
            trace
            for trace in chart.figures[0]["data"]
            if trace.get("meta", {}).get("role") == "spread"
        ]
        assert sum(len(trace["x"]) for trace in spreads) == dots
        assert ("single plays" in chart.caption) == (dots > 0)


def test_who_is_best_at_every_price_needs_no_chart() -> None:
    frugal = charted(*make_plays("asks", BAD, spent=40.0), *make_plays("nobody", GOOD))
    assert not price_charts(frugal)
    assert "price" not in kinds(frugal)
    with pytest.raises(SparqError, match="one optimizer is best at every price"):
        draw(frugal, "price")


def test_a_swept_price_is_the_axis() -> None:
    plays = [
        play
        for price in (0.0, 0.1)
        for name, numbers, points in (("asks", GOOD, 40.0), ("nobody", BAD, 0.0))
        for play in make_plays(name, numbers, setting={PRICE: price}, spent=points * price)
    ]
    data = charted(*plays, settings=[{PRICE: 0.0}, {PRICE: 0.1}])
    (chart,) = price_charts(data)
    assert chart.by == ""
    assert "up to 0.05" in chart.caption
    (axes,) = draw(data, "price").axes
    assert axes.get_xlabel() == "cost_per_point"


def test_rewards_are_shown_minus_the_price() -> None:
    plays = [
        *make_plays("asks", BAD, reward=True, spent=40.0),
        *make_plays("nobody", GOOD, reward=True),
    ]
    data = charted(*plays, criterion=REWARD)
    (chart,) = price_charts(data)
    assert "The highest line is best" in chart.caption
    asks = next(trace for trace in chart.figures[0]["data"] if trace.get("name") == "asks")
    assert asks["y"][0] == pytest.approx(0.3)
    assert asks["y"][1] < 0.1
    (axes,) = draw(data, "price").axes
    assert axes.get_ylabel() == "reward minus price, per round"


def test_a_setting_without_plays_has_an_empty_figure() -> None:
    data = replace(charted(*PLAYS), settings=[{}, {"loss": 0.5}])
    assert len(price_charts(data)[0].figures) == 2
