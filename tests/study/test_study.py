from __future__ import annotations

import errno
import inspect
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import isnan, nan
from pathlib import Path
from statistics import fmean
from typing import Any
from unittest.mock import patch

import pytest
from numpy.random import Generator, Philox

from sparq_sim.optimizers.shared.prior import PriorWarning
from sparq_sim.optimizers.uniform import Uniform
from sparq_sim.plugin.contract import Agent, Briefing, Optimizer
from sparq_sim.report.gather import gather
from sparq_sim.scenario.model import Scenario
from sparq_sim.scenario.settings import apply_setting
from sparq_sim.study.executors import InProcess, Outcomes, Processes, Work
from sparq_sim.study.progress import Progress
from sparq_sim.study.results import Results
from sparq_sim.study.store import StoreError
from sparq_sim.study.store.files import temporary_name
from sparq_sim.study.store.keys import Label, name_play
from sparq_sim.study.study import Study
from tests.commands import run
from tests.conftest import PATIENCE, wait_until
from tests.study.plays import flip, scenario, truncate
from tests.study.test_executors import Dawdling, digests, small

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("expected")
    Study(small(), folder).run(InProcess())
    return digests(folder)


# What is played


def test_a_study_is_optimizers_by_settings_by_replications(tmp_path: Path) -> None:
    study = Study(small(), tmp_path)
    plays = study.plays()
    assert len({play.key for play in plays}) == len(plays) == 2 * 2 * 4
    assert {play.optimizer for play in plays} == {"uniform", "sparq-gp-ucb"}
    assert {play.setting["feedback.noise"] for play in plays} == {0.1, 0.3}
    assert len(study.missing()) == 16


def test_what_makes_no_difference_to_an_optimizer_is_played_once(tmp_path: Path) -> None:
    optimizers = {"slow": Dawdling(seconds=0.0), "calm": Uniform()}
    study = Study(scenario(optimizers=optimizers, sweep={"optimizers.slow.why": [1, 2]}), tmp_path)
    settings = {(play.optimizer, tuple(play.setting.items())) for play in study.plays()}
    assert settings == {
        ("slow", (("optimizers.slow.why", 1),)),
        ("slow", (("optimizers.slow.why", 2),)),
        ("calm", ()),
    }
    assert study.run(InProcess()).done == 3
    swept = study.results.table().column("optimizers.slow.why").to_pylist()
    assert set(swept) == {1, 2, None}


def test_plays_of_a_list_that_were_kept_by_what_they_name_alone_are_found_and_told_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep = {"settings": [{"feedback.noise": 0.3}, {"rounds": 3}]}
    played = scenario(optimizers=["uniform"], rounds=5, sweep=sweep)

    def as_named(self: Scenario) -> list[tuple[dict[str, object], Scenario]]:
        return [
            (dict(setting), apply_setting(self, setting, allow_import=False))
            for setting in self.sweep.each()
        ]

    with monkeypatch.context() as patch:
        patch.setattr(Scenario, "settings", as_named)
        Study(played, tmp_path).run(InProcess())
    (note,) = Results.open(tmp_path).notes
    assert "unlike settings may be taken for one: run the study again" in note
    again = Study(played, tmp_path).run(InProcess())
    assert (again.resumed, again.done, again.notes) == (2, 2, ())
    assert Results.open(tmp_path).notes == ()
    assert sorted((play.setting for play in Results.open(tmp_path).finished()), key=str) == [
        {"feedback.noise": 0.1, "rounds": 3},
        {"feedback.noise": 0.3, "rounds": 5},
    ]


def test_swept_values_of_several_types_make_one_column(tmp_path: Path) -> None:
    values = [0, 0.5, {"kind": "uniform", "low": 0.0, "high": 0.1}]
    study = Study(scenario(rounds=3, sweep={"feedback.transit": values}), tmp_path)
    study.run(InProcess())
    column = set(study.results.table().column("feedback.transit").to_pylist())
    assert column == {"0", "0.5", '{"high":0.1,"kind":"uniform","low":0.0}'}


def test_the_folder_tells_its_scenario(tmp_path: Path) -> None:
    Study(small(), tmp_path).run(InProcess())
    told = json.loads((tmp_path / "scenario.json").read_text())
    assert told["title"] == "tiny"
    assert len(told["plays"]) == 4
    assert told["plays"][0]["play"]["rounds"] == 25
    assert Results.open(tmp_path).title == "tiny"


# Going on where it stopped


class Shuffled:
    """Plays in this process, in an order of its own."""

    def outcomes(self, work: Work) -> Outcomes:
        plays = [play for group in work.groups for play in group]
        Generator(Philox(key=1)).shuffle(plays)
        work.groups = deque(deque([play]) for play in plays)
        yield from InProcess().outcomes(work)


def test_the_order_makes_no_difference(tmp_path: Path, expected: dict[str, str]) -> None:
    Study(small(), tmp_path).run(Shuffled())
    assert digests(tmp_path) == expected


@pytest.mark.parametrize("executor", [InProcess(), Processes(2)], ids=["here", "processes"])
def test_an_interrupted_study_goes_on(
    tmp_path: Path, expected: dict[str, str], executor: InProcess | Processes
) -> None:
    def interrupt(progress: Progress) -> None:
        if progress.done == 3:
            raise KeyboardInterrupt

    study = Study(small(), tmp_path)
    with pytest.raises(KeyboardInterrupt):
        study.run(executor, watch=interrupt)
    left = len(study.missing())
    assert 16 - 3 - 4 <= left <= 16 - 3
    report = study.run(executor)
    assert (report.done, report.resumed) == (16, 16 - left)
    assert digests(tmp_path) == expected
    assert not list(tmp_path.rglob("*.part"))


def test_spoilt_and_foreign_files_are_set_aside_and_played_again(
    tmp_path: Path, expected: dict[str, str]
) -> None:
    study = Study(small(), tmp_path)
    study.run(InProcess())
    truncated, flipped, orphaned, *_ = sorted(expected)
    truncate(tmp_path / "rounds" / f"{truncated}.parquet")
    flip(tmp_path / "replies" / f"{flipped}.parquet")
    (tmp_path / "replies" / f"{orphaned}.parquet").unlink()
    (tmp_path / "rounds" / "mine.csv").write_text("a,b")
    report = Study(small(), tmp_path).run(InProcess())
    assert report.resumed == 13
    assert digests(tmp_path) == expected
    said = "\n".join(report.notes)
    assert all(name in said for name in (truncated, flipped, orphaned, "mine.csv"))
    assert (tmp_path / "set-aside" / "rounds-mine.csv").read_text() == "a,b"


def test_recording_more_plays_again_and_recording_less_does_not(tmp_path: Path) -> None:
    Study(scenario(record="rounds"), tmp_path).run(InProcess())
    with pytest.raises(StoreError, match="record = 'full'"):
        Results.open(tmp_path).table("replies")
    assert Study(scenario(record="full"), tmp_path).run(InProcess()).resumed == 0
    assert Study(scenario(record="rounds"), tmp_path).run(InProcess()).resumed == 2
    assert len(Results.open(tmp_path).table("replies")) > 0


def test_a_compacted_study_is_finished(tmp_path: Path, expected: dict[str, str]) -> None:
    study = Study(small(), tmp_path)
    study.run(InProcess())
    before = study.results.table()
    study.results.compact()
    assert Study(small(), tmp_path).run(InProcess()).resumed == 16
    assert digests(tmp_path) == expected
    assert Results.open(tmp_path).table().num_rows == before.num_rows
    assert repr(study.results.table().to_pydict()) == repr(before.to_pydict())


# Merging


def test_results_of_two_machines_merge_by_copying(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    Study(scenario(seed=1), here).run(InProcess())
    Study(scenario(seed=2, replications=2), there).run(InProcess())
    shutil.copytree(there, here, dirs_exist_ok=True)
    assert len(digests(here)) == 2 + 4


def test_plays_of_another_scenario_in_the_folder_are_left_out_and_that_is_said(
    tmp_path: Path,
) -> None:
    Study(scenario(rounds=5), tmp_path).run(InProcess())
    Study(scenario(rounds=6), tmp_path, into=True).run(InProcess())
    study = Results.open(tmp_path)
    assert set(study.table().column("round").to_pylist()) == {1, 2, 3, 4, 5, 6}
    assert "left out 2 plays" in study.notes[0]


# Reading


def test_the_table_has_a_row_a_round_and_a_play_can_be_read_back(tmp_path: Path) -> None:
    study = Study(small(), tmp_path)
    study.run(InProcess())
    table = study.results.table()
    assert len(table) == 16 * 25
    assert {"optimizer", "replication", "feedback.noise", "regret"} <= set(table.column_names)
    play, results = study.plays()[-1], study.results
    assert results.read(play).trace.digest() == results.read(play.key).provenance.summary.digest
    with pytest.raises(StoreError, match="there are: rounds, replies"):
        study.results.table("turns")  # type: ignore[arg-type]


def test_a_folder_that_does_not_exist_is_named_with_the_remedy(tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    remedy = f"sparq-sim run SCENARIO --out {re.escape(str(missing))}"
    with pytest.raises(StoreError, match=f"missing: no such folder; check the path, .*{remedy}"):
        Results.open(missing)
    assert not missing.exists()


def test_an_empty_folder_is_no_study(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no finished play"):
        Results.open(tmp_path)
    with pytest.raises(StoreError, match="no finished play"):
        Study(small(), tmp_path).results.table()


# Folders and disks


def test_a_folder_of_another_format_is_refused(tmp_path: Path) -> None:
    (tmp_path / "scenario.json").write_text('{"format": 7, "plays": []}')
    for act in (lambda: Results.open(tmp_path), lambda: Study(small(), tmp_path).run(InProcess())):
        with pytest.raises(StoreError, match=r"format 7.*reads formats 2 and 3"):
            act()


def test_an_unreadable_description_is_set_aside(tmp_path: Path) -> None:
    (tmp_path / "scenario.json").write_text("{")
    report = Study(scenario(rounds=2), tmp_path).run(InProcess())
    assert "scenario.json" in report.notes[0]
    assert (tmp_path / "set-aside" / "scenario.json").read_text() == "{"


def test_a_full_disk_stops_the_study_and_what_is_finished_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = Study(small(), tmp_path)
    moves: list[Path] = []
    replace = os.replace

    def fill(source: Path, target: Path) -> None:
        if len(moves) > 4:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        moves.append(target)
        replace(source, target)

    monkeypatch.setattr(os, "replace", fill)
    with pytest.raises(StoreError, match="ENOSPC"):
        study.run(InProcess())
    monkeypatch.undo()
    assert len(study.missing()) == 14  # The scenario and two plays of two files were written.
    assert not list(tmp_path.rglob("*.part"))
    assert study.run(InProcess()).resumed == 2


def test_a_file_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "study").write_text("")
    with pytest.raises(StoreError, match="study"):
        Study(small(), tmp_path / "study").run(InProcess())


# What cannot be sent


class Calling(Optimizer):
    """Has a function for a field."""

    function: Callable[[float], float]

    def start(self, briefing: Briefing, rng: Generator) -> Agent:
        self.function(1.0)
        return Uniform().start(briefing, rng)


def test_a_scenario_that_cannot_be_pickled_plays_here_and_that_is_said(tmp_path: Path) -> None:
    calling = scenario(rounds=2, optimizers={"calling": Calling(function=lambda x: x)})
    report = Study(calling, tmp_path).run(Processes(1))
    assert report.done == 1
    assert "cannot be pickled, so all plays are computed in this process" in report.notes[-1]


def test_a_function_that_can_be_pickled_is_sent_and_that_it_is_not_known_again_is_said(
    tmp_path: Path,
) -> None:
    calling = scenario(rounds=2, optimizers={"calling": Calling(function=isnan)})
    study = Study(calling, tmp_path)
    report = study.run(Processes(1))
    assert (report.done, study.missing()) == (1, [])
    assert "optimizer.function" in report.notes[0]


NOTEBOOK = """
from sparq_sim.study.executors import Processes
from sparq_sim.optimizers.shared.prior import PriorWarning
from sparq_sim.optimizers.uniform import Uniform
from sparq_sim.study.results import Results
from sparq_sim.study.study import Study
from tests.study.plays import scenario
import sys

class Mine(Uniform):
    pass

report = Study(scenario(rounds=2, optimizers={"mine": Mine()}), sys.argv[1]).run(Processes(1))
print(report.done, *report.notes)
"""


def test_what_is_defined_in_a_notebook_plays_here_and_that_is_said(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", NOTEBOOK, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("1 ")
    assert "1 plays are computed in this process" in done.stdout


SCRIPT = """
from sparq_sim.study.executors import Processes
from sparq_sim.optimizers.uniform import Uniform
from sparq_sim.study.results import Results
from sparq_sim.study.study import Study
from tests.study.plays import scenario
import sys

class Mine(Uniform):
    pass

if __name__ == "__main__":
    study = Study(scenario(rounds=2, optimizers={"mine": Mine()}), sys.argv[1])
    report = study.run(Processes(1))
    print(report.done, report.resumed, report.failed_plays)
"""


def test_what_is_defined_in_a_script_plays_in_workers_and_is_known_until_it_is_edited(
    tmp_path: Path,
) -> None:
    script = tmp_path / "script.py"
    for text, found in ((SCRIPT, 0), (SCRIPT, 1), (f"{SCRIPT}# Edited.\n", 0)):
        script.write_text(text)
        said = run(str(script), str(tmp_path / "study"), cwd=ROOT, PYTHONPATH=str(ROOT))
        assert said == f"1 {found} ()\n"


# What is warned of


class Wary(Optimizer):
    """Warns of two things, one of them with a number of its own play."""

    def start(self, briefing: Briefing, rng: Generator) -> Agent:
        warnings.warn(f"expected more than {rng.random()} of it", PriorWarning, stacklevel=2)
        warnings.warn("something is odd", RuntimeWarning, stacklevel=1)
        return Uniform().start(briefing, rng)


def test_what_workers_warn_of_is_noted_once_and_again_when_it_is_found(tmp_path: Path) -> None:
    def notes() -> list[str]:
        study = Study(scenario(optimizers={"wary": Wary()}, replications=3), tmp_path)
        return list(study.run(Processes(1)).notes)

    first, second = notes()
    assert re.fullmatch(r"expected more than 0\.\d+ of it \(in 3 plays\)", first)
    line = inspect.getsourcelines(Wary.start)[1] + 2
    assert second == f"RuntimeWarning: something is odd (test_study.py:{line}) (in 3 plays)"
    assert notes()[1] == second
    opened = Results.open(tmp_path)
    assert opened.warnings[1] == second
    assert second in gather(opened, replays=False).notes


@pytest.mark.filterwarnings("default")
def test_what_is_warned_of_in_this_process_is_noted_and_not_printed(
    tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    study = Study(scenario(optimizers={"wary": Wary()}), tmp_path)
    assert len(study.run(InProcess()).notes) == 2
    assert not recwarn
    (play,) = study.plays()
    assert (
        study.results.read(play).provenance.summary.warnings[0].startswith("expected more than 0.")
    )


def test_a_play_that_fails_is_told_with_what_it_warned_of(tmp_path: Path) -> None:
    report = Study(scenario(optimizers={"bad": WaryAndBroken()}), tmp_path).run(Processes(1))
    assert [trouble.reason.partition(" (")[0] for trouble in report.failed_plays] == [
        "ValueError: x"
    ]
    assert len(report.notes) == 2


class WaryAndBroken(Wary):
    """Warns, and fails."""

    def start(self, briefing: Briefing, rng: Generator) -> Agent:
        super().start(briefing, rng)
        raise ValueError("x")


# Progress


def test_progress_counts_up_and_shows_average_regrets(tmp_path: Path) -> None:
    seen: list[Progress] = []
    study = Study(small(), tmp_path)
    study.run(InProcess(), watch=seen.append)
    assert [progress.done for progress in seen] == list(range(17))
    assert seen[0].remaining is None
    assert seen[-1].remaining == 0
    assert len(seen[-1].average_regrets) == 4
    again: list[Progress] = []
    study.run(InProcess(), watch=again.append)
    assert [(progress.done, progress.resumed) for progress in again] == [(16, 16)]
    assert again[-1].average_regrets == pytest.approx(seen[-1].average_regrets)
    regrets: dict[Label, list[float]] = {}
    for each in Results.open(tmp_path).finished():
        regrets.setdefault(each.label, []).append(each.measures["average_regret"] or nan)
    means = {label: fmean(numbers) for label, numbers in regrets.items()}
    assert seen[-1].average_regrets == pytest.approx(means)


# Kill -9


GATE = "SPARQ_TEST_GATE"
"""Names a folder where plays must pass, so that no study ends before it is hurt."""


class Gated(Dawdling):
    """Passes the gate first, where there is one."""

    def start(self, briefing: Briefing, rng: Generator) -> Agent:
        if gate := os.environ.get(GATE):
            pass_gate(Path(gate))
        return super().start(briefing, rng)


def pass_gate(gate: Path) -> None:
    """Wait while the gate is closed, unless one is among the first 20 of 24."""
    (gate / f"came-{os.getpid()}-{time.time_ns()}").touch()
    while (gate / "closed").exists() and len(list(gate.glob("came-*"))) > 20:
        (gate / f"waits-{os.getpid()}").touch()
        time.sleep(0.01)


@contextmanager
def gated(gate: Path) -> Iterator[None]:
    """Close the gate before all workers that are started meanwhile."""
    gate.mkdir(parents=True)
    (gate / "closed").touch()
    with patch.dict(os.environ, {GATE: str(gate)}):
        yield


def open_gate(gate: Path) -> None:
    (gate / "closed").unlink()


def dawdling() -> Any:
    optimizers = {"a": Gated(seconds=0.06), "b": Gated(seconds=0.03)}
    return scenario(replications=12, rounds=5, optimizers=optimizers)


@pytest.fixture(scope="module")
def unhurt(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("unhurt")
    with patch("time.sleep"):  # Nobody hurts it, so there is nothing to wait for.
        Study(dawdling(), folder).run(InProcess())
    return digests(folder)


def workers_of(pid: int) -> list[int]:
    """Give the worker processes of a process, on Linux."""
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            try:
                if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes():
                    found.append(int(child))
            except OSError:
                continue
    return found


def await_moment(folder: Path, seed: int) -> Generator:
    """Wait until some plays are finished, how many is left to chance, and a little longer."""
    rng = Generator(Philox(key=seed))
    plays = rng.integers(0, 16)
    wait_until(lambda: len(list(folder.glob("rounds/*.parquet"))) >= plays)
    time.sleep(rng.uniform(0.0, 0.1))
    return rng


def kill_worker(folder: Path, gate: Path, seed: int, killed: list[int]) -> None:
    rng = await_moment(folder, seed)
    wait_until(lambda: workers_of(os.getpid()))
    workers = workers_of(os.getpid())
    killed.append(workers[rng.integers(len(workers))])
    os.kill(killed[0], signal.SIGKILL)
    open_gate(gate)


def finish_with_workers(folder: Path) -> None:
    """Run again until nothing is missing: a play may have met its second death."""
    for _ in range(3):
        if Study(dawdling(), folder).run(Processes(2)).done == 24:
            return


def finish(folder: Path) -> None:
    """Play what is missing in this process."""
    with patch("time.sleep"):
        Study(dawdling(), folder).run(InProcess())


def check_killed_worker(home: Path, seed: int, unhurt: dict[str, str]) -> None:
    folder, gate, killed = home / "study", home / "gate", list[int]()
    arguments = (folder, gate, seed, killed)
    killer = threading.Thread(target=kill_worker, args=arguments, daemon=True)
    with gated(gate):
        killer.start()
        finish_with_workers(folder)
    killer.join(timeout=PATIENCE)
    assert killed
    assert digests(folder) == unhurt


COORDINATOR = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # A shell's background ignores Ctrl-C.
from sparq_sim.study.executors import Processes
from sparq_sim.study.results import Results
from sparq_sim.study.study import Study
from tests.study.test_study import dawdling
Study(dawdling(), sys.argv[1]).run(Processes(2))
"""


def coordinate(folder: Path, gate: Path) -> subprocess.Popen[str]:
    """Run the study in another process, before a closed gate."""
    with gated(gate):
        return subprocess.Popen(
            [sys.executable, "-c", COORDINATOR, str(folder)],
            start_new_session=True,
            stderr=subprocess.PIPE,
            text=True,
        )


def check_killed_coordinator(home: Path, seed: int, unhurt: dict[str, str]) -> None:
    folder = home / "study"
    with coordinate(folder, home / "gate") as coordinator:
        await_moment(folder, seed)
        workers = workers_of(coordinator.pid)
        coordinator.kill()
    wait_until(lambda: not any(map(running, workers)))
    assert len(list(folder.glob("rounds/*.parquet"))) < 24
    finish(folder)
    assert digests(folder) == unhurt
    assert not list(folder.rglob("*.part"))


def running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


linux = pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")


@linux
@pytest.mark.parametrize("seed", range(2))  # As the first play runs, and after seven plays.
def test_a_killed_worker_changes_nothing(tmp_path: Path, seed: int, unhurt: dict[str, str]) -> None:
    check_killed_worker(tmp_path, seed, unhurt)


@linux
@pytest.mark.parametrize("seed", range(2))  # As the first play runs, and after seven plays.
def test_a_killed_coordinator_changes_nothing_and_leaves_no_worker(
    tmp_path: Path, seed: int, unhurt: dict[str, str]
) -> None:
    check_killed_coordinator(tmp_path, seed, unhurt)


@linux
def test_ctrl_c_ends_the_coordinator_in_good_order(tmp_path: Path, unhurt: dict[str, str]) -> None:
    folder, gate = tmp_path / "study", tmp_path / "gate"
    with coordinate(folder, gate) as coordinator:
        # Before they have come so far, Ctrl-C would hit the workers' imports.
        wait_until(lambda: len(list(gate.glob("waits-*"))) == 2)
        workers = workers_of(coordinator.pid)
        os.killpg(coordinator.pid, signal.SIGINT)
        assert coordinator.stderr is not None
        first = coordinator.stderr.readline()
        open_gate(gate)
        said = coordinator.stderr.read()
    assert re.fullmatch(r"Finishing [2-4] plays; Ctrl-C again ends them at once\.\n", first)
    assert said.count("Traceback") == 1
    assert said.rstrip().endswith("KeyboardInterrupt")
    assert not any(map(running, workers))
    assert not list(folder.rglob("*.part"))
    finish(folder)
    assert digests(folder) == unhurt


ENDLESS = """
rounds = 5
replications = 4
environment.kind = "synthetic"
optimizers.quick = { kind = "tests.study.test_executors:Dawdling", seconds = 0.1 }
optimizers.slow = { kind = "tests.study.test_executors:Dawdling", seconds = 600 }
"""


@linux
@pytest.mark.parametrize("whom", [os.kill, os.killpg], ids=["coordinator", "all"])
def test_sigterm_ends_the_command_in_good_order(
    tmp_path: Path, whom: Callable[[int, int], None]
) -> None:
    file, folder = tmp_path / "endless.toml", tmp_path / "out"
    file.write_text(ENDLESS, encoding="utf-8")
    command = ["run", str(file), "--out", str(folder), "--jobs", "2", "--allow-import"]
    with subprocess.Popen(
        [sys.executable, "-m", "sparq_sim", *command],
        start_new_session=True,
        stderr=subprocess.PIPE,
        text=True,
    ) as coordinator:
        while not list(folder.glob("rounds/*.parquet")):
            time.sleep(0.01)
        workers = workers_of(coordinator.pid)
        # As one that is killed while it writes leaves.
        (
            folder
            / "rounds"
            / temporary_name(Path("x")).name.replace(str(os.getpid()), str(workers[0]))
        ).touch()
        whom(coordinator.pid, signal.SIGTERM)
        assert coordinator.stderr is not None
        said = coordinator.stderr.read()
    assert said == f"Stopped. Finished plays are in {folder}; run the same command to continue.\n"
    assert coordinator.returncode == 143
    assert not any(map(running, workers))
    assert not list(folder.rglob("*.part"))


@linux
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 120))
def test_twenty_killed_workers_and_coordinators_change_nothing(
    tmp_path: Path, seed: int, unhurt: dict[str, str]
) -> None:
    check_killed_worker(tmp_path / "worker", seed, unhurt)
    check_killed_coordinator(tmp_path / "coordinator", seed, unhurt)


@linux
@pytest.mark.slow
def test_memory_does_not_grow_with_the_number_of_plays(tmp_path: Path) -> None:
    tiny = scenario(rounds=3, replications=2000, optimizers=["uniform"], record="rounds")
    sizes: list[int] = []

    def watch(progress: Progress) -> None:
        if progress.done % 100 == 0:
            pages = int(Path("/proc/self/statm").read_text().split()[1])
            sizes.append(pages * resource.getpagesize())

    assert Study(tiny, tmp_path).run(Processes(2), watch=watch).done == 2000
    assert max(sizes) - sizes[0] < 50e6


def test_the_store_is_not_loaded_with_the_package() -> None:
    listing = "import sys, sparq_sim, sparq_sim.cli; print('pyarrow' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", listing], capture_output=True, text=True)
    assert done.stdout.strip() == "False"


def test_keys_are_those_of_the_store(tmp_path: Path) -> None:
    (play, *_) = Study(small(), tmp_path).plays()
    assert play.key == name_play(play.family, play.seed, play.replication)
