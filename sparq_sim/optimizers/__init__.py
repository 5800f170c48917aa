"""Optimizers, one file an algorithm."""
