"""The posterior of a Gaussian process: one interface, and the cheapest exact way behind it."""

from numpy.typing import ArrayLike

from sparq_sim.gp.kernels import Kernel
from sparq_sim.gp.posterior.cholesky import CholeskyPosterior
from sparq_sim.gp.posterior.drifting import KalmanPosterior
from sparq_sim.gp.posterior.feature_posterior import FeaturePosterior
from sparq_sim.gp.posterior.features import Features
from sparq_sim.gp.posterior.predictor import Posterior, Predictor

__all__ = [
    "CholeskyPosterior",
    "FeaturePosterior",
    "Features",
    "KalmanPosterior",
    "Posterior",
    "Predictor",
    "make_posterior",
]

_RANK = 500  # up to so many features, predictions from them cost less than from observations


def make_posterior(
    kernel: Kernel, *, candidates: ArrayLike | None = None, mean: float = 0.0
) -> Posterior:
    """Start a posterior with prior *mean*, in the exact way that costs least.

    Where *candidates* (g, d) are given, have a kernel matrix of moderate rank and are the only
    points to be observed, use features of them; otherwise a Cholesky factor.
    """
    if candidates is not None:
        features = Features.within(kernel, candidates, rank=_RANK)
        if features is not None:
            return FeaturePosterior(features, mean=mean)
    return CholeskyPosterior(kernel, candidates=candidates, mean=mean)
