"""Features are few, and reproduce the kernel."""

import numpy as np

from sparq_sim.gp.kernels import SquaredExponential
from sparq_sim.gp.posterior import Features


def test_features_reproduce_the_kernel_in_few_columns() -> None:
    candidates = np.linspace(-50, 50, 400)[:, None]
    kernel = SquaredExponential(variance=2.0, length_scale=5.0)
    found = Features.of(kernel, candidates)
    assert found.rank < 70
    np.testing.assert_allclose(
        found.matrix @ found.matrix.T, kernel(candidates, candidates), atol=1e-13
    )
