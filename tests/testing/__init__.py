from __future__ import annotations

from collections.abc import Iterable

from sparq_sim.testing import Law, LawError, UncheckedError


def broken(laws: Iterable[Law]) -> list[str]:
    """Give the names of those that are broken; what rests on them is not checked."""
    names = []
    for law in laws:
        try:
            law.check()
        except UncheckedError:
            continue
        except LawError:
            names.append(law.name)
    return names
