"""Priors: densities of kernel parameters, which guide a fit to few observations."""

from __future__ import annotations

from abc import abstractmethod
from math import lgamma, log, pi
from typing import Annotated, Literal, TypeAlias

from sparq_sim.fields import Positive
from sparq_sim.plugin.model import Model
from sparq_sim.plugin.parts import PartChoice

__all__ = ["AnyPrior", "Gamma", "LogNormal", "Prior"]


class Prior(Model):
    """The density of a parameter x > 0.

    A prior of your own defines both methods; a fit adds `log_density` to the log likelihood.
    """

    @abstractmethod
    def log_density(self, value: float) -> float:
        """Return the logarithm of the density.

        Args:
            value: The parameter x, above 0.
        """

    @abstractmethod
    def slope(self, value: float) -> float:
        """Return the derivative of the log density by log x.

        Args:
            value: The parameter x, above 0.
        """


class Gamma(Prior):
    """A prior whose density is proportional to x^(shape - 1) exp(-rate x)."""

    kind: Literal["gamma"] = "gamma"
    shape: Positive
    """The shape of the density, whose mode is (shape - 1) / rate, or 0 up to a shape of 1."""
    rate: Positive
    """How fast the density falls for large values; its mean is shape / rate."""

    def log_density(self, value: float) -> float:
        constant = self.shape * log(self.rate) - lgamma(self.shape)
        return constant + (self.shape - 1) * log(value) - self.rate * value

    def slope(self, value: float) -> float:
        return self.shape - 1 - self.rate * value


class LogNormal(Prior):
    """A prior of x where log x is normal with *log_mean* and *log_std*."""

    kind: Literal["lognormal"] = "lognormal"
    log_mean: float
    """The mean of the logarithm."""
    log_std: Positive
    """The std of the logarithm."""

    def log_density(self, value: float) -> float:
        deviation = (log(value) - self.log_mean) / self.log_std
        return -0.5 * deviation**2 - log(value * self.log_std) - 0.5 * log(2 * pi)

    def slope(self, value: float) -> float:
        return -1 - (log(value) - self.log_mean) / self.log_std**2


AnyPrior: TypeAlias = Annotated[Prior, PartChoice("prior", Gamma, LogNormal)]
"""A prior as a field: a table with a `kind`, or a model."""
