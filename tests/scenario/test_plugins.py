"""Optimizers share defaults."""

from __future__ import annotations

from pathlib import Path

from sparq_environments.synthetic import Synthetic
from sparq_sim.optimizers.gp_ucb import GPUCB
from sparq_sim.optimizers.tv_gp_ucb import TVGPUCB
from sparq_sim.optimizers.uniform import Uniform
from sparq_sim.scenario.model import Scenario
from tests.scenario.samples import (
    problem,
    problems,
    write,
)

SHARED = """
rounds = 5
environment = { kind = "synthetic" }
[optimizer_defaults]
width = 2.0
epsilon = 0.2
[optimizers]
gp.kind = "gp-ucb"
tv = { kind = "tv-gp-ucb", width = 3.0 }
uniform.kind = "uniform"
"""


WRITTEN = """
rounds = 5
environment = { kind = "synthetic" }
[optimizers]
gp = { kind = "gp-ucb", width = 2.0 }
tv = { kind = "tv-gp-ucb", width = 3.0, epsilon = 0.2 }
uniform.kind = "uniform"
"""


def test_a_default_is_that_of_each_optimizer_that_has_the_field_and_does_not_set_it(
    tmp_path: Path,
) -> None:
    shared = Scenario.load(write(tmp_path, SHARED))
    written = Scenario.load(write(tmp_path, WRITTEN))
    assert shared.optimizers == written.optimizers
    assert shared.fingerprint("tv") == written.fingerprint("tv")
    assert shared.resolve()["optimizers"] == written.resolve()["optimizers"]


def test_defaults_go_to_models_and_to_lists_of_kinds_too() -> None:
    world = {"rounds": 5, "environment": Synthetic(), "optimizer_defaults": {"width": 2.0}}
    given = Scenario(**world, optimizers={"gp-ucb": GPUCB()})
    listed = Scenario(**world, optimizers=["gp-ucb"])
    assert given.optimizers == listed.optimizers == {"gp-ucb": GPUCB(width=2.0)}


def test_defaults_can_be_extended_overridden_and_swept(tmp_path: Path) -> None:
    write(tmp_path, SHARED, "base.toml")
    child = (
        'extends = "base.toml"\n[optimizer_defaults]\nmean = 1.5\n'
        '[sweep]\n"optimizer_defaults.width" = [1.0, 4.0]\n"optimizers.tv.mean" = [0.0]\n'
    )
    scenario = Scenario.load(write(tmp_path, child), overrides=["optimizer_defaults.epsilon=0.4"])
    found = [each.optimizers for _, each in scenario.settings()]
    assert found == [
        {
            "gp": GPUCB(width=width, mean=1.5),
            "tv": TVGPUCB(width=3.0, mean=0.0, epsilon=0.4),
            "uniform": Uniform(),
        }
        for width in (1.0, 4.0)
    ]


def test_a_table_of_an_optimizer_is_laid_over_that_of_the_defaults(tmp_path: Path) -> None:
    kernel = 'kernel = { kind = "matern-3/2", length_scale = 2.0, variance = 4.0 }'
    file = write(tmp_path, SHARED.replace("width = 2.0", kernel))
    scenario = Scenario.load(file, overrides=["optimizers.gp.kernel.length_scale=3"])
    kernels = [scenario.resolve()["optimizers"][name]["kernel"] for name in ("gp", "tv")]  # type: ignore[index] # JSON
    assert [each["length_scale"] for each in kernels] == [3.0, 2.0]
    assert [each["variance"] for each in kernels] == [4.0, 4.0]


def test_a_default_that_is_wrong_is_told_once_and_where_it_is_given(tmp_path: Path) -> None:
    text = SHARED.replace("width = 2.0", "width = -2.0") + 'more.kind = "gp-ucb"\n'
    file = write(tmp_path, text.lstrip())
    assert problem(file).startswith(f"{file}:4: optimizer_defaults.width: -2.0: ")


def test_a_default_that_no_optimizer_has_is_refused(tmp_path: Path) -> None:
    file = write(tmp_path, SHARED.replace("epsilon", "epsilom").lstrip())
    assert problem(file) == (
        f"{file}:5: optimizer_defaults.epsilom: 0.2: no optimizer of this scenario has such a "
        "field; did you mean 'epsilon'?"
    )


def test_a_kind_that_is_wrong_does_not_make_its_defaults_wrong(tmp_path: Path) -> None:
    file = write(tmp_path, SHARED.replace('"tv-gp-ucb"', '"tv-gp-ucp"').lstrip())
    (told,) = problems(file)
    assert "did you mean 'tv-gp-ucb'?" in told


def test_a_swept_default_that_is_wrong_is_told_with_its_path(tmp_path: Path) -> None:
    sweep = '[sweep]\n"feedback.noise" = [0.1]\n"optimizer_defaults.epsilon" = [0.1, 7]\n'
    file = write(tmp_path, SHARED.lstrip() + sweep)
    assert problem(file).startswith(f'{file}:12: sweep."optimizer_defaults.epsilon": [0.1, 7]: ')


def test_a_swept_default_that_does_not_reach_a_table_of_an_optimizers_own_is_refused(
    tmp_path: Path,
) -> None:
    kernels = """
[optimizer_defaults.kernel]
kind = "matern-5/2"
length_scale = 5.0
variance = 0.3
[optimizers]
own = { kind = "gp-ucb", kernel = { length_scale = 7.0 } }
whole = { kind = "gp-ucb", kernel = { kind = "squared-exponential" } }
shared.kind = "gp-ucb"
[sweep]
"optimizer_defaults.kernel.variance" = [0.1, 0.9]
"""
    text = f'rounds = 5\nenvironment = {{ kind = "synthetic" }}{kernels}'
    file = write(tmp_path, text)
    assert problem(file) == (
        f'{file}:12: sweep."optimizer_defaults.kernel.variance": [0.1, 0.9]: does not reach the '
        "optimizer 'own', which has a part of 'kernel' itself: sweep "
        "optimizers.own.kernel.variance beside it, by way = 'zip', or leave 'kernel' to the "
        "defaults"
    )
    scenario = Scenario.load(write(tmp_path, text.replace("own = {", "# own = {")))
    kept, swept = (
        [each.optimizers[name] for _, each in scenario.settings()] for name in ("whole", "shared")
    )
    assert kept[0] == kept[1]
    assert swept[0] != swept[1]
