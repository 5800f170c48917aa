"""Benchmarks: ratios to peers that do the same work; never part of the tests.

`make bench` runs all; one runs by `python -m benchmarks.kernel [--check] [--json]`.
"""
