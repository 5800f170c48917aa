"""Gaussian processes: kernels, observations, posteriors, fits, sparse inference and its bounds."""
