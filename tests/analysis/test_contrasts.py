"""Paired differences along a setting, at a price, and without an expert."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas  # type: ignore[import-untyped] # has no types of its own
import pytest
from numpy.random import Generator
from scipy import stats

from sparq_sim import SparqError
from sparq_sim.analysis.contrasts import (
    Contrast,
    compare_at_price,
    compare_values,
    compare_without,
    find_linked_paths,
)
from sparq_sim.analysis.pairs import compare_optimizers
from sparq_sim.analysis.summary import AnalysisError
from sparq_sim.cli.main import app, main
from sparq_sim.errors import PluginError
from sparq_sim.optimizers.uniform import Uniform
from sparq_sim.plugin.contract import Agent, Briefing
from sparq_sim.report.terminal import contrast_table
from sparq_sim.scenario.model import Scenario
from sparq_sim.study.ablation import plan_without
from sparq_sim.study.executors import InProcess
from sparq_sim.study.results import Results
from sparq_sim.study.settings import find_path
from sparq_sim.study.store import PlayId, StoredSummary, StoreError
from sparq_sim.study.study import Study
from tests.cli.invoking import runner
from tests.report.test_terminal import drawn
from tests.study.plays import scenario

NOISE, LOSS = "feedback.noise", "experts.sage.channel.loss"
SAGE = {"kind": "truth", "channel": {"noise": 0.1, "cost_per_point": 0.1}}
LIAR = {"kind": "biased", "bias": -2.0, "channel": {"noise": 0.1, "cost_per_point": 0.01}}


class Lost(Uniform):
    """Plays with experts, and cannot without."""

    def start(self, briefing: Briefing, rng: Generator) -> Agent:
        if not briefing.experts:
            raise PluginError("nobody is there")
        return super().start(briefing, rng)


def small(**fields: Any) -> Scenario:
    return scenario(**{"experts": {"sage": SAGE}, "rounds": 12, "replications": 3, **fields})


def run(played: Scenario, folder: Path) -> Results:
    Study(played, folder).run(InProcess())
    return Results.open(folder)


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Results:
    swept = small(sweep={NOISE: [0.1, 0.3], LOSS: [0.0, 0.5]})
    return run(swept, tmp_path_factory.mktemp("study"))


@pytest.fixture(scope="module")
def advised(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Hold plays of one who asks both experts, and of one who asks the sage alone."""
    experts = {"sage": SAGE, "liar": LIAR}
    both = {"kind": "sparq-gp-ucb", "routing": {"kind": "shares", "shares": {"sage": 1, "liar": 1}}}
    optimizers = {
        "open": {"kind": "sparq-gp-ucb", "routing": {"kind": "information"}},
        "sage-only": {"kind": "sparq-gp-ucb", "expert": "sage"},
        "half-half": both,
    }
    played = small(experts=experts, optimizers=optimizers, rounds=20, record="full")
    return run(played, tmp_path_factory.mktemp("advised"))


def by_pandas(folder: Path, price: float = 0.0) -> Any:
    """Compute what each play comes to, from the files alone."""
    files = sorted((folder / "rounds").glob("*.parquet"))
    rounds = pandas.concat([pandas.read_parquet(file) for file in files], ignore_index=True)
    plays = rounds.groupby(["optimizer", "setting", "replication"])
    return plays["regret"].mean() + price * plays["spent"].last() / plays["round"].count()


def interval(gaps: Any) -> tuple[float, float, float]:
    """Return mean and interval of the mean."""
    mean, reach = gaps.mean(), stats.t.ppf(0.975, len(gaps) - 1) * gaps.sem()
    return mean, mean - reach, mean + reach


def told(found: Contrast) -> tuple[float, float, float]:
    return found.difference.mean, found.difference.low, found.difference.high


def key(**values: float) -> str:
    paths = {"noise": NOISE, "loss": LOSS}
    return json.dumps({paths[n]: v for n, v in values.items()}, sort_keys=True).replace(" ", "")


# Along a swept path


@pytest.mark.parametrize("price", [0.0, 0.5])
def test_differences_along_a_path_are_those_of_pandas(study: Results, price: float) -> None:
    found = compare_values(study.finished(), LOSS, price=price)
    totals = by_pandas(study.folder, price)
    assert len(found) == 2 * 2  # optimizers and noises
    for each in found:
        noise, loss = (float(str(each.setting[path])) for path in (NOISE, LOSS))
        here = totals[each.optimizer, key(noise=noise, loss=loss)]
        there = totals[each.optimizer, key(noise=noise, loss=0.0)]
        gaps = here - there
        assert told(each) == pytest.approx(interval(gaps))
        assert (each.here, each.there) == pytest.approx((here.mean(), there.mean()))
        assert each.better == (gaps < 0).mean()
        assert each.against == 0.0


def test_another_value_can_be_compared_with(study: Results) -> None:
    forth = compare_values(study.finished(), "noise", against=0.3)
    back = compare_values(study.finished(), "noise", against=0.1)
    assert [-each.difference.mean for each in forth] == [each.difference.mean for each in back]


@pytest.fixture(scope="module")
def listed(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Hold plays of a list of settings, each of which names another path."""
    sweep = {"settings": [{NOISE: 0.3}, {LOSS: 0.5}]}
    return run(small(sweep=sweep), tmp_path_factory.mktemp("listed"))


def test_of_a_list_only_plays_of_one_setting_are_compared(listed: Results) -> None:
    totals = by_pandas(listed.folder, 0.5)
    played = [{NOISE: 0.3, LOSS: 0.0}, {NOISE: 0.1, LOSS: 0.5}]
    at_price = compare_at_price(listed.finished(), 0.5)
    for found in (at_price, compare_optimizers(listed, "sparq-gp-ucb", "uniform")):
        assert [each.setting for each in found] == played
    for each in at_price:
        name = json.dumps(each.setting, sort_keys=True).replace(" ", "")
        gaps = totals["sparq-gp-ucb", name] - totals["uniform", name]
        assert told(each) == pytest.approx(interval(gaps))


def test_of_a_list_an_expert_is_left_out_of_the_settings_that_were_played(listed: Results) -> None:
    other = plan_without(listed, "sage")
    other.run(InProcess())
    found = compare_without(listed.finished(), other.results.finished(), "sage")
    assert len(found) == 2 * 2
    assert {each.verdict for each in found if each.optimizer == "uniform"} == {"equal"}


def test_along_a_path_of_a_list_the_other_goes_along(listed: Results) -> None:
    (one, two) = compare_values(listed.finished(), NOISE)  # The loss goes along with it.
    assert one.setting == two.setting == {NOISE: 0.3, LOSS: 0.0}


def test_what_is_swept_side_by_side_goes_along(tmp_path: Path) -> None:
    sweep = {"way": "zip", NOISE: [0.1, 0.3], LOSS: [0.0, 0.5]}
    found = run(small(sweep=sweep, optimizers=["uniform"]), tmp_path).finished()
    assert find_linked_paths(found, NOISE) == [LOSS]
    compared = (
        f"{NOISE} = 0.1 (together with {LOSS}, which is swept along with it), all else being equal."
    )
    assert f"Compared with {compared}" in printed(str(tmp_path), "--between", NOISE)
    (one,) = compare_values(found, NOISE)
    assert one.setting == {NOISE: 0.3, LOSS: 0.5}


def test_where_no_settings_differ_by_a_path_alone_it_is_named_what_else_changes(
    tmp_path: Path,
) -> None:
    sweep = {"way": "zip", NOISE: [0.1, 0.1, 0.3], LOSS: [0.0, 0.5, 0.2]}
    found = run(small(sweep=sweep, optimizers=["uniform"], rounds=3), tmp_path).finished()
    words = f"at {NOISE} = 0.1 and at another value, all else being equal: {LOSS} changes as well"
    with pytest.raises(AnalysisError, match=re.escape(words)):
        compare_values(found, NOISE)


def test_what_cannot_be_compared_is_refused(study: Results) -> None:
    found = study.finished()
    with pytest.raises(SparqError, match="'nois' is not swept: did you mean 'noise'"):
        compare_values(found, "nois")
    with pytest.raises(SparqError, match=r"noise was never 0\.2; there are: 0\.1, 0\.3"):
        compare_values(found, "noise", against=0.2)
    with pytest.raises(SparqError, match=r"may be any of a\.loss, b\.loss; write it in full"):
        find_path("loss", ["a.loss", "b.loss"])
    with pytest.raises(AnalysisError, match=r"has one value only, 0\.1"):
        compare_values([play for play in found if play.setting[NOISE] == 0.1], NOISE)
    with pytest.raises(AnalysisError, match="there is one: run the study with more"):
        compare_values([play for play in found if play.replication == 0], NOISE)
    unlike = [replace(play, play=replace(play.play, seed=hash(play.key))) for play in found]
    with pytest.raises(AnalysisError, match="there is none"):
        compare_values(unlike, NOISE)
    with pytest.raises(AnalysisError, match="price is -1"):
        compare_at_price(found, -1)
    with pytest.raises(AnalysisError, match="did you mean 'uniform'"):
        compare_at_price(found, 1, against="unifrom")
    with pytest.raises(
        AnalysisError, match="two or more optimizers, and the study has only 'uniform'"
    ):
        compare_at_price([play for play in found if play.optimizer == "uniform"], 1)


# At a price


def test_totals_and_break_even_prices_are_those_of_pandas(study: Results) -> None:
    found = compare_at_price(study.finished(), 0.5)
    assert {each.against for each in found} == {"uniform"}  # It asks nobody.
    assert len(found) == 2 * 2
    regrets, at_one = by_pandas(study.folder), by_pandas(study.folder, 1.0)
    for each in found:
        name = key(noise=each.setting[NOISE], loss=each.setting[LOSS])  # type: ignore[arg-type] # numbers
        regret = regrets["sparq-gp-ucb", name] - regrets["uniform", name]
        spent = (at_one - regrets)["sparq-gp-ucb", name] - (at_one - regrets)["uniform", name]
        assert told(each) == pytest.approx(interval(regret + 0.5 * spent))
        price = -regret.mean() / spent.mean()
        assert each.break_even.price == (pytest.approx(price) if price >= 0 else None)


# Coverage


def simulated(
    rng: np.random.Generator, gain: float, cost: float, pairs: int = 8
) -> list[StoredSummary]:
    """Draw plays at two values of a path; both meet the chance of their replication."""
    shared = rng.normal(size=pairs)
    own = rng.normal(size=(2, pairs, 2)) * [0.3, 0.2]
    return [
        StoredSummary(
            play=PlayId(
                key=f"{value}-{replication}",
                family="",
                optimizer="any",
                setting={"a": value},
                seed=0,
                replication=replication,
            ),
            record="rounds",
            digest="",
            measures={
                "average_regret": 5 + shared[replication] + noise[0] - gain * value,
                "spent": 10 * (3 + noise[1] + cost * value),
                "rounds": 10.0,
            },
            broken={},
            ended="rounds",
        )
        for value in (0, 1)
        for replication, noise in enumerate(own[value])
    ]


@pytest.mark.parametrize("cost", [1.0, 0.05])  # The second hardly differs from 0.
def test_intervals_cover_what_is_true_95_times_of_100(cost: float) -> None:
    rng, gain, price, times = np.random.default_rng(2), 0.4, 0.7, 600
    covered = np.zeros(3)
    for _ in range(times):
        found = simulated(rng, gain, cost)
        (plain,), (total,) = compare_values(found, "a"), compare_values(found, "a", price=price)
        ranges = plain.break_even.ranges
        covered += [
            plain.difference.low <= -gain <= plain.difference.high,
            total.difference.low <= price * cost - gain <= total.difference.high,
            any(low <= gain / cost <= high for low, high in ranges),
        ]
    error = 3 * np.sqrt(0.95 * 0.05 / times)
    assert covered / times == pytest.approx([0.95] * 3, abs=error)


# Without an expert


def test_the_harm_of_an_expert_is_that_of_pandas(advised: Results) -> None:
    other = plan_without(advised, "liar")
    other.run(InProcess())
    found = {
        each.optimizer: each
        for each in compare_without(advised.finished(), other.results.finished(), "liar")
    }
    assert found.keys() == {"open", "sage-only"}  # The third has a share for the liar.
    here, there = by_pandas(advised.folder), by_pandas(other.folder)
    gaps = here["open", "{}"] - there["open", "{}"]
    assert told(found["open"]) == pytest.approx(interval(gaps))
    assert found["open"].verdict == "worse"


def test_others_meet_the_same_chance_without_an_expert(advised: Results) -> None:
    other = plan_without(advised, "liar")
    other.run(InProcess())
    (one,) = [
        each
        for each in compare_without(advised.finished(), other.results.finished(), "liar")
        if each.optimizer == "sage-only"
    ]
    assert one.verdict == "equal"
    digests = [
        {play.replication: play.digest for play in each.finished() if play.optimizer == "sage-only"}
        for each in (advised, other.results)
    ]
    assert digests[0] == digests[1]


def test_who_needs_an_expert_is_left_out_or_refused(advised: Results) -> None:
    (note,) = plan_without(advised, "liar").notes
    assert note.startswith("not played without the expert 'liar': optimizers.half-half: no expert")
    with pytest.raises(StoreError, match="no expert is called 'lair': did you mean 'liar'"):
        plan_without(advised, "lair")


def test_other_code_than_that_of_the_plays_is_noted(
    advised: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("store.keys", "differences"):
        monkeypatch.setattr(f"sparq_sim.study.{module}.hash_core", lambda: "another")
    *_, note = plan_without(advised, "liar").notes
    assert "are by other code than those without 'liar' (the source of sparq-sim has" in note


def test_a_setting_of_the_expert_alone_is_played_once_without_it(study: Results) -> None:
    other = plan_without(study, "sage")
    other.run(InProcess())
    assert len(other.plays()) == 2 * 2 * 3  # Its losses make no difference.
    found = compare_without(study.finished(), other.results.finished(), "sage")
    assert len(found) == 2 * 2 * 2
    assert {each.verdict for each in found if each.optimizer == "uniform"} == {"equal"}
    again = plan_without(study, "sage").run(InProcess())
    assert again.resumed == again.done


def test_a_study_in_python_needs_no_files_to_leave_an_expert_out(tmp_path: Path) -> None:
    played = Study(small(), tmp_path)
    played.run(InProcess())
    opened = Results.open(tmp_path)
    from_models, from_files = (plan_without(each, "sage").plays() for each in (played, opened))
    assert {play.key for play in from_models} == {play.key for play in from_files}


def test_a_huge_price_makes_large_numbers_and_the_same_verdicts(study: Results) -> None:
    large, larger = (compare_at_price(study.finished(), price) for price in (1e9, 1e300))
    assert [each.verdict for each in larger] == [each.verdict for each in large]
    assert all(np.isfinite(each.difference.low) for each in larger)
    assert len(drawn(contrast_table("", larger, priced=True), width=200).splitlines()[3]) < 120


# On the command line


def printed(*arguments: str) -> str:
    result = runner.invoke(app, ["compare", *arguments], env={"COLUMNS": "120"})
    assert result.exit_code == 0, result.output
    return result.stdout


def test_compare_prints_what_is_between_settings(study: Results) -> None:
    text = printed(str(study.folder), "--between", "loss", "--against", "0.5", "--price", "2")
    assert f"Compared with {LOSS} = 0.5, all else being equal." in text
    rows = json.loads(printed(str(study.folder), "--between", LOSS, "--json"))
    assert [row["difference"] for row in rows] == [
        each.difference.mean for each in compare_values(study.finished(), LOSS)
    ]


def test_compare_names_whom_a_setting_does_not_concern(tmp_path: Path) -> None:
    swept = {"optimizer_defaults.width": [1.0, 2.0]}
    run(small(optimizers=["uniform", "gp-ucb"], rounds=5, sweep=swept), tmp_path)
    text = printed(str(tmp_path), "--between", "width")
    assert "Compared with optimizer_defaults.width = 1.0, all else being equal." in text
    assert "It makes no difference to: uniform." in text


def test_compare_prints_prices(study: Results) -> None:
    text = printed(str(study.folder), "--price", "0.5")
    assert "Compared with uniform, which spends least." in text
    assert "break-even" in text


def test_compare_names_an_expert_that_harms(advised: Results) -> None:
    arguments = [str(advised.folder), "--without", "liar", "--executor", "in-process"]
    text = printed(*arguments)
    assert "The expert 'liar' harms open: with it, average regret is" in text
    assert "The expert 'liar' makes no difference to sage-only." in text


BOARD = {"kind": "committee", "members": ["sage"]}
RELYING = {**SAGE, "channel": {"policy": {"timeout": 1.0, "fallback": "sage"}}}


@pytest.mark.parametrize(
    ("other", "words"),
    [(BOARD, "'other' asks 'sage'"), (RELYING, "'other' falls back on 'sage'")],
)
def test_an_expert_that_another_needs_cannot_be_left_out(
    tmp_path: Path, other: dict[str, Any], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    experts = {"sage": SAGE, "other": other}
    run(small(experts=experts, optimizers=["uniform"], replications=2), tmp_path)
    with pytest.raises(SystemExit) as end:
        main(["compare", str(tmp_path), "--without", "sage", "--executor", "in-process"])
    assert end.value.code == 2
    told = f"no optimizer can play without the expert 'sage': {words}\n"
    assert capsys.readouterr().err.endswith(told)
    assert not (tmp_path / "without-sage").exists()


def test_what_was_finished_without_an_expert_is_shown_where_other_plays_failed(
    tmp_path: Path,
) -> None:
    optimizers = {"lost": Lost(), "calm": Uniform()}
    run(small(optimizers=optimizers, replications=2), tmp_path)
    arguments = [str(tmp_path), "--without", "sage", "--executor", "in-process", "--allow-import"]
    result = runner.invoke(app, ["compare", *arguments])
    assert result.exit_code == 0
    assert "The expert 'sage' makes no difference to calm." in result.stdout
    assert "Note: 2 of 4 plays without the expert 'sage' failed: " in result.stderr
    assert "left out, because there are no plays to compare with: lost\n" in result.stderr


def test_the_settings_that_an_optimizer_cannot_play_are_named(tmp_path: Path) -> None:
    path = "optimizers.mine.expert"
    optimizers = {"mine": {"kind": "sparq-gp-ucb", "expert": "sage"}}
    experts = {"sage": SAGE, "liar": LIAR}
    sweep = {path: ["sage", "liar"]}
    run(small(experts=experts, optimizers=optimizers, sweep=sweep, replications=2), tmp_path)
    arguments = [str(tmp_path), "--without", "liar", "--executor", "in-process"]
    result = runner.invoke(app, ["compare", *arguments])
    assert "'liar' makes no difference to mine (where expert sage)." in result.stdout
    assert "(where expert liar)\n" in result.stderr


def test_plays_of_other_seeds_are_said_to_be_left_out(tmp_path: Path) -> None:
    for seed, replications in ((1, 2), (2, 3)):
        run(small(optimizers=["uniform"], seed=seed, replications=replications), tmp_path)
    (note,) = plan_without(Results.open(tmp_path), "sage").notes
    assert note == (
        "2 finished plays of other seeds are left out: without the expert 'sage', seed 2 alone is "
        "played, of which there are most"
    )


def test_averages_over_unlike_numbers_of_rounds_are_noted_without_an_expert_too(
    tmp_path: Path,
) -> None:
    limits = {"budget": 0.6, "ends_when_spent": True}
    run(small(optimizers=["sparq-gp-ucb"], **limits), tmp_path)
    arguments = ["compare", str(tmp_path), "--without", "sage", "--executor", "in-process"]
    unlike = "averages over different numbers of rounds cannot be compared"
    assert unlike in runner.invoke(app, arguments).stderr
    (row,) = json.loads(runner.invoke(app, [*arguments, "--json"]).stdout)
    assert any(unlike in note for note in row["notes"])
    assert row["study"] == str(tmp_path)


def test_rows_without_a_partner_are_said_to_be_left_out(tmp_path: Path) -> None:
    sweep = {NOISE: [0.1, 0.3]}
    study = run(small(rounds=5, sweep=sweep), tmp_path)
    for play in study.finished():
        if play.optimizer == "uniform" and play.setting[NOISE] == 0.1:
            (tmp_path / "rounds" / f"{play.key}.parquet").unlink()
    result = runner.invoke(app, ["compare", str(tmp_path), "--between", "noise", "--json"])
    (row,) = json.loads(result.stdout)
    assert (row["optimizer"], row["path"], row["against"]) == ("sparq-gp-ucb", NOISE, 0.1)
    assert (
        "left out, because there are no plays to compare with: uniform (noise 0.3)" in result.stderr
    )


def test_of_several_that_spend_as_little_all_are_named(tmp_path: Path) -> None:
    run(small(optimizers=["uniform", "gp-ucb", "sparq-gp-ucb"]), tmp_path)
    text = printed(str(tmp_path), "--price", "1")
    found = re.search(r"of those that spend least \((.*)\), it has the least regret\.", text)
    assert found is not None
    assert set(found[1].split(", ")) == {"uniform", "gp-ucb"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--between", "nois"], "did you mean 'noise'"),
        (["--between", "noise", "--against", "7"], "was never 7"),
        (["--between", "noise", "--without", "sage"], "use one at a time"),
        (["--against", "uniform"], "--against goes with"),
        (["--without", "sagge"], "did you mean 'sage'"),
        (["--price", "nan"], "the price is nan"),
    ],
)
def test_questions_that_make_no_sense_are_refused_plainly(
    study: Results, arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        main(["compare", str(study.folder), *arguments])
    assert end.value.code == 2
    assert words in capsys.readouterr().err


# Where the best reward is not known


def without_best(play: StoredSummary) -> StoredSummary:
    """Return the play as if only its rewards were known; the best reward was 2 throughout."""
    regret = play.measures["average_regret"] or 0.0
    known = {**play.measures, "average_regret": None, "mean_reward": 2.0 - regret}
    return replace(play, knows_best=False, measures=known)


@pytest.mark.parametrize("price", [0.0, 0.3])
def test_rewards_tell_what_regrets_tell(study: Results, price: float) -> None:
    found = study.finished()
    blind = [without_best(play) for play in found]
    for one, other in (
        (compare_at_price(found, price), compare_at_price(blind, price)),
        (
            compare_values(found, NOISE, price=price),
            compare_values(blind, NOISE, price=price),
        ),
    ):
        for regrets, rewards in zip(one, other, strict=True):
            assert rewards.verdict == regrets.verdict
            assert rewards.better == regrets.better
            assert rewards.here == pytest.approx(2.0 - regrets.here)
            assert rewards.difference.mean == pytest.approx(-regrets.difference.mean)
            assert rewards.break_even.price == pytest.approx(regrets.break_even.price)
            assert rewards.flat()["criterion"] == "mean_reward"
            assert "criterion" not in regrets.flat()


def test_without_any_reward_there_is_nothing_to_compare(study: Results) -> None:
    blind = [
        replace(play, knows_best=False, measures={**play.measures, "mean_reward": None})
        for play in study.finished()
    ]
    with pytest.raises(AnalysisError, match="no reward was observed"):
        compare_at_price(blind, 0.1)
