"""Posteriors: what is believed of a reward given observations, exactly, at the least cost."""

from numpy.typing import ArrayLike

from sparq_sim.gp.kernels import Kernel
from sparq_sim.gp.posterior.cholesky import CholeskyPosterior
from sparq_sim.gp.posterior.drifting import KalmanPosterior
from sparq_sim.gp.posterior.feature_posterior import FeaturePosterior
from sparq_sim.gp.posterior.features import Features
from sparq_sim.gp.predictor import Posterior, Predictor

__all__ = [
    "CholeskyPosterior",
    "FeaturePosterior",
    "Features",
    "KalmanPosterior",
    "Posterior",
    "Predictor",
    "make_posterior",
]

_RANK = 500  # features up to which predictions cost less than from observations


def make_posterior(
    kernel: Kernel, *, candidates: ArrayLike | None = None, mean: float = 0.0
) -> Posterior:
    """Make a posterior without observations, of the exact kind that costs least.

    Where candidates are given, have a kernel matrix of moderate rank and are the only points to be
    observed, this is a `FeaturePosterior`; otherwise a `CholeskyPosterior`.

    Args:
        kernel: The kernel of the reward.
        candidates: The points at which predictions are wanted, (g, d); by default none.
        mean: The prior mean, in reward units.

    Returns:
        The posterior. A `FeaturePosterior` refuses observations elsewhere.
    """
    if candidates is not None:
        features = Features.within(kernel, candidates, rank=_RANK)
        if features is not None:
            return FeaturePosterior(features, mean=mean)
    return CholeskyPosterior(kernel, candidates=candidates, mean=mean)
