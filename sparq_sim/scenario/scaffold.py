"""Templates: what `new` writes, a plug-in package that works or a scenario file."""

from __future__ import annotations

import ast
import builtins
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from keyword import iskeyword
from pathlib import Path
from string import Template
from typing import Literal, NamedTuple, TypeAlias

from sparq_sim.errors import SparqError, did_you_mean
from sparq_sim.plugin.registry import Kind, list_names
from sparq_sim.scenario.bundled import find_bundled

NewKind: TypeAlias = Literal["environment", "expert", "optimizer", "scenario"]

LONGEST_NAME = 30
"""In characters: the lines of generated code stay within 100."""


def new(kind: NewKind, name: str, folder: Path) -> list[Path]:
    """Write a plug-in package into `folder/name`, or a scenario into `folder/name.toml`.

    Give the files written. If the name or the place cannot be used, or a file cannot be written,
    nothing is left behind.
    """
    known = [*PLUGINS, "scenario"]
    if kind not in known:
        raise SparqError(f"cannot make a new {kind!r}: {did_you_mean(str(kind), known)}")
    _check_spelling(name)
    if kind == "scenario":
        home, target = folder, folder / f"{name}.toml"
        files = {target.name: Template(SCENARIO).substitute(name=name)}
        objections = _objections_to_scenario(name)
    else:
        home = target = folder / name
        files = _package(kind, name)
        objections = _objections_to_plugin(kind, name, files)
    if objection := next(objections, None):
        raise SparqError(f"{name!r} cannot name a new {kind}: {objection}; use another name")
    _check_place(folder, target)
    return _write(home, files)


# Names


def _module(name: str) -> str:
    return name.replace("-", "_")


def _class(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("-"))


def _check_spelling(name: str) -> None:
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name):
        raise SparqError(
            f"{name!r} cannot be a name; use lower-case words joined by dashes, as in my-expert, "
            "of the letters a to z and digits, a letter first"
        )
    if len(name) > LONGEST_NAME:
        raise SparqError(
            f"{name!r} has {len(name)} characters; use a name of at most {LONGEST_NAME}"
        )


def _objections_to_scenario(name: str) -> Iterator[str]:
    if name in find_bundled():
        yield "a scenario of this name is installed"


def _objections_to_plugin(kind: Kind, name: str, files: Mapping[str, str]) -> Iterator[str]:
    """Say what speaks against a name, the plainest reason first."""
    module, model = _module(name), _class(name)
    if name in list_names(kind):
        yield f"an {kind} of this name is installed"
    if iskeyword(module) or iskeyword(model) or hasattr(builtins, model):
        yield f"{module!r} or {model!r} is a word of Python's own"
    if module in sys.stdlib_module_names or _is_importable(module):
        yield f"there is a module {module!r} already, which it would hide"
    if _is_distribution(name):
        yield f"there is a package {name!r} already, which it would replace"
    if name.startswith("test"):
        yield f"pytest would take {model!r} for a test"
    if model in _imported(files):
        yield f"its class would be called {model!r}, as one that it uses"


def _is_importable(module: str) -> bool:
    # A folder of this name in the current one is found too, but has no origin and hides nothing.
    spec = find_spec(module)
    return spec is not None and spec.origin is not None


def _is_distribution(name: str) -> bool:
    with suppress(PackageNotFoundError):
        distribution(name)
        return True
    return False


def _imported(files: Mapping[str, str]) -> set[str]:
    """Give the names that the code in *files* imports from sparq-sim and other libraries."""
    code = [text for file, text in files.items() if file.endswith(".py")]
    return {
        alias.name
        for text in code
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ImportFrom) and str(node.module).partition(".")[0] in USED
        for alias in node.names
    }


USED = ("sparq_sim", "numpy", "pydantic", "math")
"""The libraries that generated code imports from."""


# Files


def _package(kind: Kind, name: str) -> dict[str, str]:
    """Give the text of each file of a plug-in package."""
    module = _module(name)
    parts = PLUGINS[kind]
    templates = {
        "pyproject.toml": PYPROJECT,
        "README.md": README,
        f"{module}.py": parts.plugin,
        f"test_{module}.py": parts.test,
        "scenario.toml": parts.scenario,
    }
    words = {"kind": kind, "name": name, "module": module, "model": _class(name)}
    return {
        file: Template(text).substitute(words, does=parts.does) for file, text in templates.items()
    }


def _check_place(folder: Path, target: Path) -> None:
    """Check that *folder* is one, and that in it *target* is free: absent, or an empty folder."""
    try:
        if not folder.is_dir():
            raise SparqError(f"{folder}: no such folder; make it first, or name another")
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            raise SparqError(f"{target}: exists already; move it, or use another name")
    except OSError as error:
        place = error.filename or target
        raise SparqError(f"{place}: cannot be read: {error.strerror}; name another") from error


def _write(home: Path, files: Mapping[str, str]) -> list[Path]:
    """Write *files* into *home*: all of them, or none."""
    fresh = not home.exists()
    written: list[Path] = []
    try:
        home.mkdir(exist_ok=True)
        for name, text in files.items():
            with (home / name).open("x", encoding="utf-8", newline="\n") as stream:
                written.append(home / name)
                stream.write(text)
    except OSError as error:
        with suppress(OSError):
            for file in written:
                file.unlink()
            if fresh:
                home.rmdir()
        place = error.filename or home
        raise SparqError(
            f"{place}: cannot be written: {error.strerror}; mend that, or name another folder"
        ) from error
    return written


class Parts(NamedTuple):
    """The templates of a kind, and what its plug-in does."""

    plugin: str
    test: str
    scenario: str
    does: str


# What every package has

PYPROJECT = """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "$name"
version = "0.1.0"
description = "An $kind for sparq-sim that $does."
readme = "README.md"
requires-python = ">=3.11"
dependencies = ["sparq-sim"] # numpy and pydantic come with it

[project.optional-dependencies]
test = ["pytest"]

# The name on the left is the `kind` in scenario files.
[project.entry-points."sparq_sim.${kind}s"]
$name = "$module:$model"

[tool.hatch.build.targets.wheel]
only-include = ["$module.py"]
dev-mode-dirs = ["."] # where an editable install finds it

[tool.mypy]
strict = true

[tool.ruff]
line-length = 100
"""

README = """\
# $name

An $kind for sparq-sim that $does.

Install it beside sparq-sim, test it, and run a scenario with it:

```sh
python -m pip install --editable ".[test]"
python -m pytest
sparq-sim run scenario.toml
```

The $kind is in `$module.py`. Its tests check the laws that every $kind obeys, one by one, and a
claim of its own. After the first command, `sparq-sim list` shows it as `$name`.
"""

# An environment

ENVIRONMENT = '''\
"""An environment: a hill that drifts."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from pydantic import Field, PositiveFloat
from sparq_sim import Box, Environment
from sparq_sim.arrays import Point, Points, Values
from sparq_sim.plugin.contract import Landscape


class $model(Environment):
    """A hill on the unit square whose top drifts along an ellipse.

    f(x, t) = exp(-|x - top(t)|^2 / (2 width^2))
    top_i(t) = 0.5 + 0.4 sin(2 pi t / duration + phase_i)
    """

    width: float = Field(default=0.2, ge=0.01)
    """The std of the hill, in sides of the square; at least 0.01."""
    duration: PositiveFloat = 60.0
    """How long one turn takes, in clock units."""

    def start(self, rng: Generator) -> Landscape:
        """Draw the phases; nothing else is left to chance."""
        return ${model}Landscape(self, rng.uniform(0.0, 2 * np.pi, size=2))


class ${model}Landscape:
    """The started hill: a pure function of points and time."""

    domain = Box([0.0, 0.0], [1.0, 1.0], ["x", "y"])

    def __init__(self, model: $model, phases: Values) -> None:
        self._model = model
        self._phases = phases

    def rewards(self, points: Points, time: float) -> Values:
        """Give f at each row of *points* (n, 2)."""
        distances = np.linalg.norm(points - self._top(time), axis=1)
        values: Values = np.exp(-0.5 * (distances / self._model.width) ** 2)
        return values

    def best(self, time: float) -> tuple[Point, float]:
        """Give the top, which is known exactly, and the reward there."""
        return self._top(time), 1.0

    def _top(self, time: float) -> Point:
        top: Point = 0.5 + 0.4 * np.sin(2 * np.pi * time / self._model.duration + self._phases)
        return top
'''

ENVIRONMENT_TEST = '''\
"""Tests of the environment."""

from __future__ import annotations

import numpy as np
from sparq_sim.testing import laws

from $module import $model

# Each is a test for every law of environments; the guide to plug-ins lists them.
test_laws = laws($model())
test_laws_of_a_small_and_fast_one = laws($model(width=0.05, duration=7.0))


def test_its_top_is_back_after_one_turn_and_elsewhere_after_half() -> None:
    """A claim of its own."""
    landscape = $model(duration=10.0).start(np.random.default_rng(0))
    (start, _), (half, _), (turn, _) = (landscape.best(time) for time in (0.0, 5.0, 10.0))
    assert np.allclose(start, turn)
    assert not np.allclose(start, half)
'''

ENVIRONMENT_SCENARIO = """\
title = "$name"
rounds = 100
replications = 4                # the same four runs of luck for every optimizer

[environment]
kind = "$name"
duration = 60.0                 # of one turn, in clock units; a round lasts 1

[feedback]
noise = 0.05                    # of the reward as it is observed; it arrives at once

[optimizers]
tv-gp-ucb.kind = "tv-gp-ucb"    # forgets what is old
uniform.kind = "uniform"        # chance: what learning nothing gets
"""

# An expert

EXPERT = '''\
"""An expert: one who knows the past."""

from __future__ import annotations

from pydantic import NonNegativeFloat
from sparq_sim import Estimate, Expert, Query, World


class $model(Expert):
    """Knows the reward as it was a while ago, or at the beginning of the play."""

    lag: NonNegativeFloat = 2.0
    """How long ago, in clock units."""

    async def answer(self, query: Query, world: World) -> Estimate:
        """Tell the reward of then, and that it is of then."""
        then = max(0.0, world.clock.now - self.lag)
        return Estimate(world.rewards(query.points, then), measured_at=then)
'''

EXPERT_TEST = '''\
"""Tests of the expert."""

from __future__ import annotations

from sparq_sim import Rules, play
from sparq_sim.simulation.measures import staleness
from sparq_sim.testing import Asker, Slope, laws

from $module import $model

# Each is a test for every law of experts; the guide to plug-ins lists them.
test_laws = laws($model())
test_laws_without_lag = laws($model(lag=0.0), environment="synthetic")


def test_its_answers_are_as_old_as_its_lag() -> None:
    """A claim of its own; in round 1 of these plays it is 1 o'clock, and the past is short."""
    expert = $model(lag=3.0)
    trace = play(Asker(batch=1), Slope(), Rules(rounds=5), experts={"expert": expert})
    assert staleness(trace, "expert").tolist() == [1.0, 2.0, 3.0, 3.0, 3.0]
'''

EXPERT_SCENARIO = """\
title = "$name"
rounds = 100
replications = 4                # the same four runs of luck for every optimizer

[environment]
kind = "synthetic"              # a hill that sways, with a period of 62.8 clock units

[feedback]
noise = 0.1                     # of the reward as it is observed; it arrives at once

[experts.expert]
kind = "$name"
lag = 2.0                       # clock units; a round lasts 1
channel = { noise = 0.1, cost_per_point = 0.001 } # as noisy as the reward, and not free

[optimizers]
sparq-gp-ucb.kind = "sparq-gp-ucb" # asks the expert about a few points
tv-gp-ucb.kind = "tv-gp-ucb"    # asks nobody, and forgets what is old
"""

# An optimizer

OPTIMIZER = '''\
"""An optimizer: one that stays near the best point it knows of."""

from __future__ import annotations

from math import inf

import numpy as np
from numpy.random import Generator
from pydantic import NonNegativeFloat, PositiveFloat
from sparq_sim import Answer, Box, Move, Optimizer, Briefing
from sparq_sim.domain import Domain
from sparq_sim.messages import Reply
from sparq_sim.arrays import Point
from sparq_sim.plugin.contract import Agent


class $model(Optimizer):
    """Plays near the best point observed, whose value fades with its age.

    A point is worth value - *forgetting* * age. Steps away from it are normal.
    """

    forgetting: NonNegativeFloat = 0.05
    """How much an observed value loses in a clock unit, in reward units."""
    reach: PositiveFloat = 0.02
    """The std of a step, as a share of the domain's extent in each coordinate."""

    def start(self, briefing: Briefing, rng: Generator) -> Agent:
        """Begin with what the play's design shows, if it has one."""
        agent = ${model}Agent(self, briefing.domain, rng)
        if briefing.design is not None:
            agent.tell(briefing.design)
        return agent


class ${model}Agent:
    """The agent of one play."""

    def __init__(
        self,
        model: $model,
        domain: Domain,
        rng: Generator,
    ) -> None:
        self._model = model
        self._domain = domain
        self._rng = rng
        self._best: Point | None = None
        self._score = -inf

    def ask(self, now: float) -> Move:
        """Play near the best point; anywhere, as long as there is none."""
        if self._best is None:
            return Move(self._domain.sample(self._rng, 1)[0])
        return Move(self._near(self._best))

    def tell(self, reply: Reply) -> None:
        """Keep the best point of the answer, if it is worth more than the one kept."""
        if not isinstance(reply, Answer):
            return
        # value - forgetting * (now - measured_at), but for a term that is the same for all points:
        # so their order never changes, and it is enough to keep one.
        scores = reply.values + self._model.forgetting * reply.measured_at
        row = int(scores.argmax())
        if scores[row] > self._score:
            self._best, self._score = reply.points[row], float(scores[row])

    def _near(self, point: Point) -> Point:
        step = self._model.reach * self._rng.normal(size=self._domain.dimensions)
        if isinstance(self._domain, Box):
            lower, upper = self._domain.lower, self._domain.upper
            return np.clip(point + step * (upper - lower), lower, upper)
        sites = self._domain.points
        gaps = np.linalg.norm(sites - (point + step * np.ptp(sites, axis=0)), axis=1)
        nearest: Point = sites[gaps.argmin()]
        return nearest
'''

OPTIMIZER_TEST = '''\
"""Tests of the optimizer."""

from __future__ import annotations

import numpy as np
from sparq_sim import Box, Query, Briefing
from sparq_sim.testing import laws

from $module import $model

# Each is a test for every law of optimizers; the guide to plug-ins lists them.
test_laws = laws($model())
test_laws_of_a_far_reaching_one = laws($model(forgetting=0.0, reach=1.0))


def test_a_good_point_gives_way_to_a_newer_one_in_time() -> None:
    """A claim of its own: 1 - 0.1 * 9 is less than 0.5."""
    optimizer = $model(forgetting=0.1, reach=1e-9)
    agent = optimizer.start(Briefing(domain=Box(0.0, 1.0)), np.random.default_rng(0))
    for now, place, value in [(1.0, 0.2, 1.0), (2.0, 0.8, 0.5), (10.0, 0.8, 0.5)]:
        agent.tell(Query(int(now), "reward", np.array([[place]]), now).answer([value]))
        expected = 0.8 if now == 10.0 else 0.2
        point = agent.ask(now).point
        assert point is not None
        assert np.allclose(point, expected)
'''

OPTIMIZER_SCENARIO = """\
title = "$name"
rounds = 200
replications = 4                # the same four runs of luck for every optimizer

[environment]
kind = "synthetic"              # a hill that sways, with a period of 62.8 clock units

[feedback]
noise = 0.1                     # of the reward as it is observed; it arrives at once

[optimizers]
$name = { kind = "$name", forgetting = 0.05, reach = 0.02 }
tv-gp-ucb.kind = "tv-gp-ucb"    # a Gaussian process that forgets what is old
uniform.kind = "uniform"        # chance: what learning nothing gets
"""

PLUGINS: dict[Kind, Parts] = {
    "environment": Parts(
        ENVIRONMENT, ENVIRONMENT_TEST, ENVIRONMENT_SCENARIO, does="is a drifting hill"
    ),
    "expert": Parts(
        EXPERT, EXPERT_TEST, EXPERT_SCENARIO, does="knows the reward as it was a while ago"
    ),
    "optimizer": Parts(
        OPTIMIZER, OPTIMIZER_TEST, OPTIMIZER_SCENARIO, does="stays near the best point it knows of"
    ),
}

# A scenario

SCENARIO = """\
# Run it with `sparq-sim run $name.toml`; change a field for one run with --set rounds=50.
title = "$name"                 # stands above the results
rounds = 100                    # of each play
period = 1.0                    # how long a round lasts, in clock units
replications = 4                # plays of each optimizer, all on the same runs of luck
seed = 0                        # of all chance
budget = 1.0                    # for all queries of a play; without this line there is no limit
access = "past"                 # ask experts about points already played, or anywhere: "domain"
record = "rounds"               # keep a row a round; "full" keeps every reply as well

[environment]                   # what is optimised: `sparq-sim list environments`
kind = "synthetic"              # the paper's function, a hill that sways over a wavy plain

[feedback]                      # the road by which the reward arrives
noise = 0.1                     # std of what is added to it
transit = 0.0                   # how late it is, in clock units

[experts.sensor]                # one who can be asked; the name is free
kind = "truth"                  # who it is: `sparq-sim list experts`

[experts.sensor.channel]        # the road to it
service = { kind = "exponential", mean = 0.2 } # how long it takes to answer, in clock units
transit = 1.0                   # how long the answer is on its way
loss = 0.1                      # the share of answers that never arrive
noise = 0.1                     # std of what is added to its values
cost_per_point = 0.001          # charged when asked

[optimizers]                    # who is compared; the names are free: `sparq-sim list optimizers`
sparq-gp-ucb.kind = "sparq-gp-ucb" # forgets what is old, and asks the sensor about a few points
tv-gp-ucb.kind = "tv-gp-ucb"    # forgets too, and asks nobody
uniform.kind = "uniform"        # chance: what learning nothing gets

# [sweep]                       # take the # away to play all of it with each of these values
# "experts.sensor.channel.transit" = [0.0, 1.0, 5.0] # any field, by its path
"""
