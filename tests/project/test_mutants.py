from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from textwrap import dedent

import pytest

from mutants.__main__ import render_outcome
from mutants.contexts import find_mirrors
from mutants.operators import find_mutants
from mutants.reviewed import LIST, Reviewed, read_reviewed
from mutants.sampling import draw_sample, name_room
from mutants.trials import Trial, read_trials
from mutants.workshop import Workshop, open_workshop

ROOT = Path(__file__).parent.parent.parent


def mutate(source: str) -> set[tuple[str, str]]:
    """Return the operator of each mutant of a *source*, and the line that it makes."""
    return {(mutant.operator, mutant.after) for mutant in find_mutants(dedent(source), "a.py")}


@pytest.mark.parametrize(
    ("line", "mutants"),
    [
        ("a = b < c", {("comparison", "a = b <= c")}),
        ("a = b not in c", {("comparison", "a = b in c")}),
        ("a = b + c", {("arithmetic", "a = b - c")}),
        ("a += b", {("arithmetic", "a -= b"), ("statement", "pass")}),
        ("a = b and c", {("boolean", "a = b or c")}),
        ("a = -b", {("sign", "a = (b)")}),
        ("a = not b", {("condition", "a = (b)")}),
        ("a = b if c else d", {("condition", "a = b if not (c) else d")}),
        ("a = 2", {("constant", "a = 3")}),
        ("a = True", {("constant", "a = False")}),
        ('a = "key"', {("constant", 'a = "XXkey"')}),
        ("a.b = c", {("statement", "pass")}),
        ("a(b, c)", {("statement", "pass"), ("arguments", "a(c, b)")}),
        ('a = "ä, " + b', {("arithmetic", 'a = "ä, " - b')}),
    ],
)
def test_each_operator_makes_its_mistake(line: str, mutants: set[tuple[str, str]]) -> None:
    assert mutate(line) == mutants


def test_returns_and_loops_are_turned_round() -> None:
    source = """
        def f(a):
            for b in a:
                if b > c:
                    break
            return b
    """
    assert mutate(source) == {
        ("comparison", "if b >= c:"),
        ("condition", "if not (b > c):"),
        ("loop", "continue"),
        ("return", "return None"),
    }


def test_what_only_readers_and_type_checkers_see_is_left_out() -> None:
    source = '''
        """What it is for."""
        __all__ = ["a"]
        T = TypeVar("T")
        Kind: TypeAlias = Literal["b"]
        if TYPE_CHECKING:
            c = 1
        class D(Protocol):
            e = 2
        class F:
            g: "int"
            """What a field is."""
        def h(i: Literal["j"]) -> Literal[3]:
            assert i is not None
            warnings.warn(f"{i + 1}", stacklevel=2)
    '''
    assert mutate(source) == {("statement", "pass")}  # The warning itself.


def test_a_mutant_is_the_source_but_for_its_line() -> None:
    source = "a = 1\nb = [\n    a + 2,\n]\n"
    (mutant,) = (each for each in find_mutants(source, "a.py") if each.operator == "arithmetic")
    assert mutant.apply(source) == "a = 1\nb = [\n    a - 2,\n]\n"
    assert (mutant.number, mutant.before, mutant.after) == (3, "a + 2,", "a - 2,")


def test_a_mutant_knows_the_class_and_the_function_that_it_is_in() -> None:
    source = "class A:\n    a = 1\n    def f(self):\n        return -self.a\nb = 2\n"
    places = [(each.within, each.operator) for each in find_mutants(source, "a.py")]
    assert places == [("A", "constant"), ("A.f", "return"), ("A.f", "sign"), ("", "constant")]


def test_a_sample_is_spread_over_all_rooms_of_the_core_and_its_seed_repeats_it() -> None:
    sample = draw_sample(ROOT, 60, 3)
    assert len(sample) == 60
    rooms = {name_room(mutant.file) for mutant in sample}
    assert {"simulation/clock", "simulation/delivery", "study/store", "gp/posterior"} <= rooms
    assert draw_sample(ROOT, 60, 3) == sample
    assert draw_sample(ROOT, 60, 4) != sample


def test_the_mirror_of_a_module_is_its_own_test_or_those_of_its_room() -> None:
    assert find_mirrors(ROOT, "sparq_sim/simulation/clock/virtual.py") == [
        "tests/simulation/clock/test_virtual.py"
    ]
    assert find_mirrors(ROOT, "sparq_sim/study/executors/pooled.py") == [
        "tests/study/test_executors.py"
    ]
    of_room = find_mirrors(ROOT, "sparq_sim/simulation/delivery/link.py")
    assert "tests/simulation/delivery/test_connection.py" in of_room


# A small project, in which one mistake is noticed and another is not.


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Workshop]:
    files = {
        "half.py": "def half(number):\n    return number / 2 if number > 0 else 0\n",
        "test_half.py": "from half import half\n\ndef test_it():\n    assert half(4) == 2\n",
        "mutants/__init__.py": "",
        "mutants/watching.py": (ROOT / "mutants" / "watching.py").read_text(encoding="utf-8"),
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    with open_workshop(tmp_path) as workshop:
        yield workshop


def test_a_mistake_is_planted_in_a_copy_and_taken_back(small: Workshop, tmp_path: Path) -> None:
    source = (tmp_path / "half.py").read_text(encoding="utf-8")
    found = {mutant.after: mutant for mutant in find_mutants(source, "half.py")}
    codes = []
    for line in ("number * 2 if number > 0 else 0", "number / 2 if number >= 0 else 0"):
        with small.planted(found[f"return {line}"]):
            codes.append(small.run_tests(["test_half.py"], limit=60).code)
    codes.append(small.run_tests(["test_half.py"], limit=60).code)
    assert codes == [1, 0, 0]
    assert (tmp_path / "half.py").read_text(encoding="utf-8") == source


def test_a_test_that_never_ends_is_ended(small: Workshop) -> None:
    endless = "def test_it():\n    while True:\n        pass\n"
    (small.root / "test_half.py").write_text(endless, encoding="utf-8")
    assert small.run_tests(["test_half.py"], limit=2).code is None


# The reviewed list.


def test_the_list_can_be_read_and_has_each_survivor_once() -> None:
    entries = read_reviewed(ROOT / LIST)
    assert len({replace(entry, verdict="accepted", reason="") for entry in entries}) == len(entries)


def test_an_entry_of_the_list_without_a_reason_is_refused(tmp_path: Path) -> None:
    entry = 'file = "a"\nwithin = ""\noperator = "sign"\nbefore = "b"\nafter = "c"\n'
    entry += 'verdict = "accepted"\n'
    path = tmp_path / "list.toml"
    path.write_text(f'[[survivor]]\n{entry}reason = " "\n', encoding="utf-8")
    with pytest.raises(ValueError, match="survivor 1 has no reason"):
        read_reviewed(path)


def test_the_outcome_counts_what_is_killed_and_shows_what_is_new(tmp_path: Path) -> None:
    folder = tmp_path / "sparq_sim" / "gp"
    folder.mkdir(parents=True)
    source = "a = b < c\nd = e + f\ng = h - i\n"
    (folder / "x.py").write_text(source, encoding="utf-8")
    killed, known, new = find_mutants(source, "sparq_sim/gp/x.py")
    log = tmp_path / "log.jsonl"
    trials = [
        Trial(killed, "failed", "test_it", 3, 1.0),
        Trial(known, "survived", "", 3, 1.0),
        Trial(new, "survived", "", 3, 1.0),
    ]
    log.write_text("".join(trial.to_json() + "\n" for trial in trials), encoding="utf-8")
    assert read_trials(log) == trials
    entry = Reviewed(
        known.file,
        known.within,
        known.operator,
        known.before,
        known.after,
        "equivalent",
        "it is the same",
    )
    said = render_outcome(trials, [entry], tmp_path)
    assert "without the 1 that do the same as the original: 1 of 2, 50.0%" in said
    assert "x.py:2 survived 3 tests (arithmetic) - equivalent: it is the same" in said
    assert "x.py:3 survived 3 tests (arithmetic) - new" in said
    assert "    -g = h - i\n    +g = h + i" in said
