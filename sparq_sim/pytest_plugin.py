"""The pytest plug-in: a test made by `sparq_sim.testing.laws` is run once for each law.

It is loaded in every run of pytest where sparq-sim is installed: it imports nothing, and leaves
all other tests alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest import Metafunc  # noqa: PT013 - only its type

__all__ = ["pytest_generate_tests"]


def pytest_generate_tests(metafunc: Metafunc) -> None:
    """Run a test of laws once for each of them, under its name.

    Args:
        metafunc: What pytest knows of a test function.
    """
    laws = getattr(metafunc.function, "sparq_laws", None)
    if laws is not None:
        found = list(laws())
        metafunc.parametrize("law", found, ids=[law.name for law in found])
