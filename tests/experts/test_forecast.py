from __future__ import annotations

from typing import Literal

import numpy as np
import pytest
from numpy.random import Generator
from pydantic import ValidationError
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from sparq_experts.forecast import _LENGTHS, _NOISES, Forecast, _ForecastAtWork
from sparq_sim import Briefing, Channel, Environment, Query, Sites
from sparq_sim.arrays import Point, Points, Values
from sparq_sim.plugin.contract import Landscape
from sparq_sim.simulation.clock.protocol import Clock
from sparq_sim.testing import check_expert
from tests.conftest import on_sim_clock
from tests.delivery import ask, connect, context_on
from tests.experts import Heard, consult, landscape

Method = Literal["persistence", "ar", "gp"]
METHODS: list[Method] = ["persistence", "ar", "gp"]
FIRST, SECOND, STD = 1.6, -0.9, 0.1
"""Of y_t = FIRST y_{t-1} + SECOND y_{t-2} + STD e_t, which swings with a period of 11 or so."""
SITES, TIMES = 40, 400


class Swing(Environment):
    """Independent AR(2) series at sites, and straight lines between their times."""

    def start(self, rng: Generator) -> Landscape:
        return _SwingLandscape(rng)


class _SwingLandscape:
    domain = Sites(np.arange(SITES, dtype=float)[:, None])

    def __init__(self, rng: Generator) -> None:
        series = np.zeros((TIMES + 200, SITES))
        shocks = STD * rng.standard_normal(series.shape)
        for t in range(2, len(series)):
            series[t] = FIRST * series[t - 1] + SECOND * series[t - 2] + shocks[t]
        self._series = series[200:]

    def rewards(self, points: Points, time: float) -> Values:
        sites, before = self.domain.index(points), int(time)
        share = time - before
        after = min(before + 1, TIMES - 1)
        now: Values = (1 - share) * self._series[before] + share * self._series[after]
        return now[sites]

    def best(self, time: float) -> tuple[Point, float]:
        rewards = self.rewards(self.domain.points, time)
        return self.domain.points[rewards.argmax()], float(rewards.max())


def swinging(method: Method, delay: float) -> Heard:
    """Ask about all sites, every so often, for that is all that is independent."""
    expert = Forecast(method=method, delay=delay, window=150)
    places = np.arange(SITES, dtype=float)[:, None]
    return consult(expert, np.arange(160.0, 390.0, 10.0).tolist(), places, environment=Swing())


def mean_square(heard: Heard) -> float:
    return float(np.mean(np.square(heard.errors)))


@pytest.mark.parametrize("method", METHODS)
def test_it_obeys_the_laws(method: Method) -> None:
    check_expert(Forecast(method=method))
    check_expert(Forecast(method=method, every=0.3, delay=0.5, std=0.1))


# Errors of the best forecast from the series' own coefficients, and of the last reading.
RESPONSE = np.array([1.0, FIRST, FIRST**2 + SECOND])
CORRELATIONS = np.empty(4)
CORRELATIONS[:2] = 1.0, FIRST / (1 - SECOND)
CORRELATIONS[2] = FIRST * CORRELATIONS[1] + SECOND
CORRELATIONS[3] = FIRST * CORRELATIONS[2] + SECOND * CORRELATIONS[1]
VARIANCE = STD**2 / (1 - FIRST * CORRELATIONS[1] - SECOND * CORRELATIONS[2])


@pytest.mark.parametrize("delay", [1, 2, 3])
def test_an_autoregression_beats_persistence_on_an_ar_world(delay: int) -> None:
    forecast, last = mean_square(swinging("ar", delay)), mean_square(swinging("persistence", delay))
    best = STD**2 * np.sum(RESPONSE[:delay] ** 2)
    still = 2 * VARIANCE * (1 - CORRELATIONS[delay])
    # 920 errors, of 40 series; fitting three coefficients to 150 readings costs some per cent.
    assert forecast == pytest.approx(best, rel=0.2)
    assert last == pytest.approx(still, rel=0.2)
    assert forecast < 0.6 * last


@pytest.mark.parametrize("delay", [1, 3])
def test_a_gaussian_process_beats_persistence_on_an_ar_world(delay: int) -> None:
    assert mean_square(swinging("gp", delay)) < 0.6 * mean_square(swinging("persistence", delay))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("delay", [1, 3])
def test_it_claims_about_the_std_that_its_errors_have(method: Method, delay: int) -> None:
    heard = swinging(method, delay)
    claimed = np.concatenate([answer.stds for answer in heard.answers])
    # The Gaussian process does not know what world this is, and may be off by more.
    slack = 0.4 if method == "gp" else 0.2
    assert np.mean(np.square(heard.errors / claimed)) == pytest.approx(1.0, rel=slack)


def test_an_autoregression_of_order_two_continues_a_sine_exactly() -> None:
    history = np.sin(0.7 * np.arange(30.0))
    value, std = Forecast(method="ar").predict(history, 4.0)
    assert value == pytest.approx(np.sin(0.7 * 33))
    assert std < 1e-9


def test_an_autoregression_goes_straight_between_steps() -> None:
    expert, history = Forecast(method="ar"), np.sin(0.7 * np.arange(30.0))
    (two, _), (between, _), (three, _) = (expert.predict(history, s) for s in (2.0, 2.25, 3.0))
    assert between == pytest.approx(0.75 * two + 0.25 * three)


@pytest.mark.parametrize("std", [0.0, 0.05, 0.3])
@pytest.mark.parametrize("steps", [1.0, 2.5, 20.0])
def test_the_gaussian_process_is_the_likeliest_of_scikit_learn(std: float, steps: float) -> None:
    history = np.sin(0.3 * np.arange(25.0)) + std * np.random.default_rng(3).normal(size=25)
    times, centred = np.arange(25.0)[:, None], history - history.mean()
    fits = []
    for length in _LENGTHS:
        for noise in _NOISES:
            matrix = RBF(length)(times) + noise * np.eye(25)
            variance = centred @ np.linalg.solve(matrix, centred) / 25
            kernel = ConstantKernel(variance) * RBF(length)
            fit = GaussianProcessRegressor(kernel, alpha=variance * noise, optimizer=None)
            fits.append((fit.fit(times, centred), variance * noise))
    likeliest, noise_variance = max(fits, key=lambda fit: fit[0].log_marginal_likelihood_value_)
    mean, spread = likeliest.predict([[24 + steps]], return_std=True)
    value, claimed = Forecast(method="gp").predict(history, steps)
    assert value == pytest.approx(mean[0] + history.mean(), abs=1e-5)
    assert claimed == pytest.approx(np.hypot(spread[0], np.sqrt(noise_variance)), rel=1e-3)


def test_a_gaussian_process_beats_persistence_on_a_smooth_world() -> None:
    moments = np.arange(30.0, 60.0).tolist()
    errors = {
        method: mean_square(consult(Forecast(method=method, delay=2.0), moments, [0.1, 0.9]))
        for method in METHODS
    }
    assert errors["gp"] < 0.01 * errors["persistence"]


def test_it_knows_nothing_younger_than_its_delay() -> None:
    heard = consult(Forecast(method="persistence", every=1.0, delay=2.5), [9.0], [0.3])
    (answer,) = heard.answers
    assert answer.values == heard.truth.rewards(answer.points, 6.0)


def test_a_forecast_is_for_now() -> None:
    (answer,) = consult(Forecast(delay=3.0), [9.0]).answers
    assert answer.measured_at == answer.arrived_at == 9.0


@pytest.mark.parametrize("method", METHODS)
def test_without_delay_it_tells_its_reading(method: Method) -> None:
    heard = consult(Forecast(method=method, delay=0.0), [20.0], [0.3])
    assert heard.errors == [0.0]
    assert heard.answers[0].stds.tolist() == [0.0]


def test_before_the_first_reading_comes_in_it_says_so() -> None:
    heard = consult(Forecast(delay=2.0), [1.0, 2.0])
    assert "no reading has come in yet" in heard.failures[0].reason
    assert len(heard.answers) == 1


def test_with_too_few_readings_to_judge_itself_it_claims_its_prior() -> None:
    for method in METHODS:
        (answer,) = consult(Forecast(method=method, prior_std=0.7), [2.0]).answers
        assert answer.stds.tolist() == [0.7]


def test_a_reading_is_taken_once_with_its_noise() -> None:
    expert = Forecast(method="persistence", std=0.5, every=10.0)
    first, second, third = consult(expert, [12.0, 15.0, 22.0], [0.2]).answers
    assert first.values == second.values != third.values


def test_an_unknown_method_or_a_window_of_one_is_refused() -> None:
    with pytest.raises(ValidationError, match=r"'persistence', 'ar' or 'gp'"):
        Forecast(method="oracle")
    with pytest.raises(ValidationError, match="window"):
        Forecast(window=1)


def test_a_window_too_short_for_its_autoregression_is_refused_with_the_remedy() -> None:
    with pytest.raises(ValidationError, match=r"window 10 .* takes 11 readings; give a longer"):
        Forecast(order=3, window=10)
    Forecast(order=3, window=11)
    Forecast(method="gp", order=3, window=10)


def test_only_what_still_counts_is_remembered() -> None:
    domain = landscape().domain
    at_work = Forecast(method="persistence", window=5).start(Briefing(domain))
    assert isinstance(at_work, _ForecastAtWork)
    points = domain.cover(60)

    async def main(clock: Clock) -> None:
        context = context_on(clock, landscape())
        connect("expert", at_work, Channel(), context)
        for number in range(60):
            await clock.until(float(number + 1))
            context.round = number + 1
            places = points[[number, number, 0]]
            ask(context, Query(number + 1, "expert", places, clock.now))

    on_sim_clock(main)
    # The place that is asked about again and again, and one a round for as long as the window.
    assert len(at_work._readings) <= 1 + 5
    assert {len(book) for book in at_work._readings.values()} == {5}


def test_a_reading_keeps_its_noise_for_as_long_as_it_counts() -> None:
    expert = Forecast(method="persistence", std=0.5, every=10.0, window=3)
    first, second = consult(expert, [12.0, 19.0], [0.2, 0.2, 0.9]).answers
    assert first.values[0] == first.values[1] == second.values[0]
