"""The expert `forecast`: late readings, extrapolated to the present."""

from __future__ import annotations

from functools import lru_cache
from math import ceil, floor, inf, isnan, nan
from typing import Annotated, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from sparq_sim.arrays import Matrix, Points, Values
from sparq_sim.errors import Unavailable
from sparq_sim.fields import Amount, Positive, Size
from sparq_sim.messages import NO_READING, Estimate, Query
from sparq_sim.plugin.contract import Answering, Briefing, Expert, World

__all__ = ["Forecast"]

_LENGTHS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
"""The length scales that `gp` chooses from, in steps between readings."""
_NOISES = np.array([1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0])
"""The variances of noise that `gp` chooses from, as shares of the kernel's variance."""


class Forecast(Expert):
    """Receives regular readings late, and extrapolates them to the current time.

    At each point that it is asked about it has readings at the times 0, every, 2 every, ..., up
    to *delay* ago, of which it uses the last *window*. The *method* is one of

    - persistence: the last reading; the std is the root mean square of past changes over the same
      length of time;
    - ar: an autoregression y_t = c + sum_i a_i y_{t-i} with i up to *order*, fitted by least
      squares and iterated to the current time; the variance is that of the residuals times the
      sum of squares of the impulse response (Box and Jenkins 1970, chapter 5);
    - gp: regression in time with a squared-exponential kernel, whose length scale, variance and
      noise are the most likely of a few values (Rasmussen and Williams 2006, section 5.4.1); the
      noise stands for all changes that are too fast for the kernel, and is part of the std.

    While there are too few readings for the method, persistence answers. Readings that a record
    does not have are left out: the others count as consecutive, and the forecast reaches from the
    last of them to the current time. A forecast is dated with the current time: its uncertainty
    is in the std, not in its staleness. Where no reading has arrived, it fails. It keeps the
    readings of the points that it was asked about within the last window times every.
    """

    method: Literal["persistence", "ar", "gp"] = "ar"
    """How the readings are extrapolated: the last one is kept (`persistence`), by autoregression
    (`ar`), or by a Gaussian process in time (`gp`)."""
    every: Positive = 1.0
    """The time between readings, in clock units."""
    delay: Amount = 1.0
    """How old a reading is when it arrives, in clock units."""
    window: Annotated[Size, Field(ge=2)] = 50
    """How many of the latest readings are used; at least 2."""
    order: Size = 2
    """How many past readings `ar` predicts the next one from; with two or more it can oscillate."""
    std: Amount = 0.0
    """The std of the noise of a reading, in reward units."""
    prior_std: Positive = 1.0
    """The std that it claims while it has too few readings to estimate one, in reward units."""

    @model_validator(mode="after")
    def _has_readings_enough(self) -> Self:
        if self.method == "ar" and self.window < self._fewest:
            raise ValueError(
                f"window {self.window} is too short for ar of order {self.order}, which takes "
                f"{self._fewest} readings; give a longer window or a lower order"
            )
        return self

    @property
    def _fewest(self) -> int:
        """How many readings an autoregression needs: twice as many equations as unknowns."""
        return 3 * self.order + 2

    def start(self, briefing: Briefing) -> Answering:
        return _ForecastAtWork(self)

    def predict(self, history: Values, steps: float) -> tuple[float, float]:
        """Predict the value some time after the last reading.

        Args:
            history: The readings at one point, oldest first, (k,).
            steps: The time from the last reading to the forecast, in units of *every*.

        Returns:
            The predicted value and its std, in reward units; without a reading the value is NaN.
        """
        if not len(history):
            return nan, self.prior_std
        if steps == 0:
            return float(history[-1]), self.std
        if self.method == "ar" and len(history) >= self._fewest:
            return _autoregression(history, steps, self.order)
        if self.method == "gp" and len(history) > 2 and np.ptp(history) > 0:
            return _regression(history, steps)
        lead = max(1, round(steps))
        changes = history[lead:] - history[:-lead]
        std = np.sqrt(np.mean(changes**2)) if len(changes) > 1 else self.prior_std
        return float(history[-1]), float(std)


class _ForecastAtWork:
    def __init__(self, model: Forecast) -> None:
        self._model = model
        self._readings: dict[tuple[float, ...], dict[int, float]] = {}

    async def answer(self, query: Query, world: World) -> Estimate:
        model = self._model
        now = world.clock.now / model.every
        # A reading that is late only by rounding counts as arrived.
        newest = floor(now - model.delay / model.every + 1e-9)
        if newest < 0:
            raise Unavailable("no reading has come in yet")
        forecasts = []
        for last, history in self._histories(query.points, newest, world):
            forecasts.append(model.predict(history, max(0.0, now - last)))
        values, stds = np.array(forecasts).T
        return Estimate(values, stds=stds, absent=NO_READING)

    def _histories(self, points: Points, newest: int, world: World) -> list[tuple[int, Values]]:
        """Return the step of the last reading and the last readings, for each point.

        A reading is taken once, and kept while it lies in the window.
        """
        model = self._model
        steps = range(max(0, newest - model.window + 1), newest + 1)
        places = [tuple(point) for point in points.tolist()]
        books = {place: self._readings.get(place, {}) for place in places}
        for step in steps:
            unread = [place for place, book in books.items() if step not in book]
            if unread:
                read_at = min(step * model.every, world.clock.now)
                read = world.rewards(np.array(unread), read_at)
                if model.std:
                    read = read + model.std * world.rng.standard_normal(len(unread))
                for place, reading in zip(unread, read.tolist(), strict=True):
                    books[place][step] = reading
        for place, book in books.items():
            self._readings.pop(place, None)
            self._readings[place] = {step: book[step] for step in steps}
        self._forget(steps[0])
        return [_leave_out_gaps(self._readings[place]) for place in places]

    def _forget(self, oldest: int) -> None:
        """Drop the points that have no reading from step *oldest* on."""
        # The point that was asked about longest ago comes first.
        while max(self._readings[place := next(iter(self._readings))]) < oldest:
            del self._readings[place]


def _leave_out_gaps(book: dict[int, float]) -> tuple[int, Values]:
    """Return the step of the last reading that exists, and all readings that exist."""
    there = {step: reading for step, reading in book.items() if not isnan(reading)}
    return max(there, default=0), np.array(list(there.values()))


def _autoregression(history: Values, steps: float, order: int) -> tuple[float, float]:
    rows = np.lib.stride_tricks.sliding_window_view(history, order + 1)
    design = np.column_stack([np.ones(len(rows)), rows[:, :-1]])
    fitted = np.linalg.lstsq(design, rows[:, -1], rcond=None)[0]
    residuals = rows[:, -1] - design @ fitted
    variance = residuals @ residuals / (len(rows) - order - 1)
    path: list[float] = history[-order:].tolist()
    response = [0.0] * (order - 1) + [1.0]
    for _ in range(ceil(steps)):
        path.append(float(fitted[0] + fitted[1:] @ path[-order:]))
        response.append(float(fitted[1:] @ response[-order:]))
    # Between two steps the value is interpolated linearly; the std is that of the later step.
    ahead = steps - ceil(steps)
    value = path[-1] + ahead * (path[-1] - path[-2]) if ahead else path[-1]
    return value, float(np.sqrt(variance * np.sum(np.square(response[order - 1 : -1]))))


def _regression(history: Values, steps: float) -> tuple[float, float]:
    mean = history.mean()
    likeliest = -inf
    for length in _LENGTHS:
        eigenvalues, vectors = _spectrum(len(history), length)
        turned = vectors.T @ (history - mean)
        spreads = eigenvalues[:, None] + _NOISES
        variances = (turned[:, None] ** 2 / spreads).mean(axis=0)
        scores = -0.5 * (len(history) * np.log(variances) + np.log(spreads).sum(axis=0))
        chosen = int(scores.argmax())
        if scores[chosen] > likeliest:
            likeliest = scores[chosen]
            ahead = vectors.T @ _kernel(np.arange(len(history) - 1.0, -1.0, -1.0) + steps, length)
            weights = ahead / spreads[:, chosen]
            value = mean + weights @ turned
            # Rounding may explain more than the whole variance; the noise remains.
            unexplained = _NOISES[chosen] + max(0.0, 1.0 - weights @ ahead)
            std = np.sqrt(variances[chosen] * unexplained)
    return float(value), float(std)


def _kernel(gaps: Values, length: float) -> Values:
    covariances: Values = np.exp(-0.5 * (gaps / length) ** 2)
    return covariances


@lru_cache(maxsize=256)
def _spectrum(count: int, length: float) -> tuple[Values, Matrix]:
    """Return the eigenvalues and eigenvectors of the kernel of *count* consecutive readings."""
    times = np.arange(count, dtype=float)
    eigenvalues, vectors = np.linalg.eigh(_kernel(times[:, None] - times, length))
    return np.maximum(eigenvalues, 0.0), vectors
