"""What the bases of plug-ins say of themselves can be done as they say it."""

from __future__ import annotations

from inspect import getdoc
from textwrap import dedent
from typing import Any

import numpy as np
import pytest

import sparq_sim
from sparq_sim import Environment, Expert, Optimizer
from sparq_sim.fields import Amount, Positive, Probability
from sparq_sim.plugin.contract import Model
from sparq_sim.testing import check_environment, check_expert, check_optimizer


def example(base: type) -> dict[str, Any]:
    """Run the code in the docstring of a base, and return the classes that it makes."""
    _, _, code = (getdoc(base) or "").partition("::\n\n")
    names = {name: getattr(sparq_sim, name) for name in sparq_sim.__all__}
    made: dict[str, Any] = {}
    exec(  # The text is ours.
        dedent(code),
        {
            **names,
            "np": np,
            "Model": Model,
            "Amount": Amount,
            "Positive": Positive,
            "Probability": Probability,
            "__name__": __name__,
        },
        made,
    )
    return made


@pytest.mark.parametrize(
    ("base", "check", "name"),
    [
        (Environment, check_environment, "Tide"),
        (Expert, check_expert, "Lagged"),
        (Optimizer, check_optimizer, "Greedy"),
    ],
)
def test_the_example_of_a_base_obeys_the_laws(
    base: type, check: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = example(base)
    for each in made.values():  # Pickle looks for them, and they for each other, in this module.
        monkeypatch.setitem(globals(), each.__name__, each)
        for function in vars(each).values():
            if hasattr(function, "__globals__"):
                function.__globals__.update(made)
    check(made[name]())


def test_the_example_of_a_model_is_one() -> None:
    assert example(Model)["Pump"]().rate == 1.0
