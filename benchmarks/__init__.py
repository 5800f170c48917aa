"""Benchmarks: how long we take compared with a peer that does the same work.

They are not part of the tests. `make bench` runs all; `python -m benchmarks.kernel [--check]
[--json]` runs one.
"""
