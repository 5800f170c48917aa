"""The pytest plug-in: a test file of three lines, in which each law has a name."""

from __future__ import annotations

import sys

import pytest

pytest_plugins = ["pytester"]

PLUGINS = '''
import numpy as np
from sparq_sim import Box, Environment, Estimate, Expert

class Mine(Expert):
    """Answers, or not."""

    answers: bool = True

    async def answer(self, query, world):
        if not self.answers:
            await world.clock.sleep(1e9)
        return Estimate(np.zeros(len(query.points)))

class Broken(Environment):
    """Has hooks of the wrong shape, the wrong signature and the wrong type."""

    def start(self, rng):
        return Landscape()

class Landscape:
    domain = Box(0.0, 1.0)
    cell_count = "many"

    def rewards(self, points, time):
        return -points[:, 0]

    def best(self, time):
        return np.zeros(1), 0.0

    def observe(self, points, time, rng):
        return -points

    def available(self, points):
        return np.ones(len(points), bool)
'''


@pytest.fixture(autouse=True)
def _plug_ins_of_an_author(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function")
    pytester.makepyfile(mine=PLUGINS)
    pytester.syspathinsert()


def run_laws(pytester: pytest.Pytester, line: str, *options: str) -> pytest.RunResult:
    """Run a test file of three lines."""
    imports = "from mine import *\nfrom sparq_sim.testing import laws\n"
    pytester.makepyfile(test_mine=f"{imports}{line}\n")
    return pytester.runpytest("-p", "no:xdist", "-p", "no:cacheprovider", *options)


def outcomes(result: pytest.RunResult) -> dict[str, str]:
    """Give what became of each test, by name."""
    words = ("PASSED", "FAILED", "SKIPPED")
    lines = [line for line in result.outlines if line.startswith("test_mine.py::")]
    return {
        line.removeprefix("test_mine.py::").partition("] ")[0] + "]": word
        for line in lines
        for word in words
        if f"] {word}" in line
    }


def test_each_law_is_a_test_with_its_name(pytester: pytest.Pytester) -> None:
    result = run_laws(pytester, "test_expert = laws(Mine())", "-v")
    seen = outcomes(result)
    assert set(seen.values()) == {"PASSED"}
    assert "test_expert[answers at least once in 12 rounds]" in seen
    assert "test_expert[keeps no state on the model]" in seen


def test_laws_are_tests_in_a_class_too(pytester: pytest.Pytester) -> None:
    result = run_laws(pytester, "class TestMine:\n    test_expert = laws(Mine())", "-v")
    seen = outcomes(result)
    assert set(seen.values()) == {"PASSED"}
    assert "TestMine::test_expert[keeps no state on the model]" in seen


def test_the_broken_law_is_named_and_the_others_pass(pytester: pytest.Pytester) -> None:
    line = 'test_expert = laws(Mine(answers=False), environment="synthetic")'
    result = run_laws(pytester, line, "-v")
    seen = outcomes(result)
    named = [name for name, outcome in seen.items() if outcome != "PASSED"]
    assert named == ["test_expert[answers at least once in 12 rounds]"]
    result.stdout.fnmatch_lines(
        ["*LawError: mine.Mine: answers at least once in 12 rounds; seen:*"]
    )


def test_of_three_broken_hooks_each_is_named_and_what_rests_on_them_is_skipped(
    pytester: pytest.Pytester,
) -> None:
    seen = outcomes(run_laws(pytester, "test_world = laws(Broken())", "-v"))
    assert [name for name, outcome in seen.items() if outcome == "FAILED"] == [
        "test_world[available can be called with (points, time)]",
        "test_world[cell_count is a whole number above 0]",
        "test_world[observations of 9 points have shape (9,)]",
    ]
    skipped = [name for name, outcome in seen.items() if outcome == "SKIPPED"]
    assert skipped
    assert all("available" in name or "observations" in name for name in skipped)


def test_one_law_can_be_chosen(pytester: pytest.Pytester) -> None:
    result = run_laws(pytester, "test_world = laws(Broken())", "-k", "finite and rewards")
    counts = result.parseoutcomes()
    assert counts["passed"] == 1
    assert counts.keys() == {"passed", "deselected"}


def test_fixtures_and_marks_apply_to_each_law(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(
        "import pytest\n@pytest.fixture(autouse=True)\ndef told():\n    print('used')\n"
    )
    marked = "import pytest\ntest_expert = pytest.mark.xfail(laws(Mine(answers=False)))"
    result = run_laws(pytester, marked, "-s")
    counts = result.parseoutcomes()
    assert counts["xfailed"] == 1
    assert result.stdout.str().count("used") == counts["xfailed"] + counts["xpassed"]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("test_it = laws(Mine(), environment='rodd')", "*did you mean 'rod'*"),
        ("test_it = laws(Broken(), environment='rod')", "*are for experts, not for mine.Broken*"),
        ("test_it = laws(Mine)", "*laws are those of plug-ins and their parts, not of*"),
    ],
)
def test_what_has_no_laws_is_refused_when_it_is_collected(
    pytester: pytest.Pytester, line: str, told: str
) -> None:
    result = run_laws(pytester, line)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([told])


def test_without_the_plug_in_the_test_does_not_pass_unseen(pytester: pytest.Pytester) -> None:
    result = run_laws(pytester, "test_expert = laws(Mine())", "-p", "no:sparq_sim")
    result.assert_outcomes(errors=1)


def test_a_run_of_pytest_without_laws_loads_nothing_of_sparq_sim_but_the_plug_in(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(
        test_other="import sys\n\ndef test_nothing():\n"
        "    ours = {name for name in sys.modules if name.startswith('sparq_')}\n"
        "    assert ours == {'sparq_sim', 'sparq_sim.pytest_plugin'}, ours\n"
        "    assert 'pydantic' not in sys.modules"
    )
    ran = pytester.run(sys.executable, "-m", "pytest", "-p", "no:xdist", "test_other.py")
    ran.assert_outcomes(passed=1)
