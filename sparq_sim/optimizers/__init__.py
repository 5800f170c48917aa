"""Optimizers: one module an algorithm; what several of them use is in `shared`."""
