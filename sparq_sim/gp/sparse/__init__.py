"""Sparse inference: the few points through which many can be known, and how to choose them."""
