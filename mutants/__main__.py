"""Plant mutants in the core, and tell which of them the tests do not notice.

    python -m mutants [--sample N] [--seed N] [--again FILE] [--fresh]

It exits with 1 if a mutant survives that is not in the reviewed list, `mutants/survivors.toml`.
"""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from mutants.contexts import measure_contexts
from mutants.operators import Mutant
from mutants.reviewed import LIST, Reviewed, read_reviewed
from mutants.sampling import draw_sample, name_room
from mutants.trials import Trial, read_trials, try_mutant
from mutants.workshop import open_workshop

__all__ = ["main", "render_outcome"]

_ROOT = Path(__file__).parent.parent


def main() -> int:
    """Try a sample of mutants; return 1 if one survives that nobody has reviewed, else 0."""
    options = _read_options()
    kept: Path = options.keep
    kept.mkdir(parents=True, exist_ok=True)
    reviewed = read_reviewed(_ROOT / LIST)
    with open_workshop(_ROOT) as workshop:
        contexts = measure_contexts(workshop, kept, fresh=options.fresh)
        if options.again is None:
            mutants = draw_sample(_ROOT, options.sample, options.seed)
        else:
            mutants = _find_survivors(options.again)
        trials = []
        with (kept / f"seed-{options.seed}.jsonl").open("w", encoding="utf-8") as log:
            for number, mutant in enumerate(mutants, 1):
                trials.append(trial := try_mutant(workshop, contexts, mutant, most=options.most))
                log.write(trial.to_json() + "\n")
                log.flush()
                _tell(trial, f"{number}/{len(mutants)}")
    print(render_outcome(trials, reviewed, _ROOT))
    return int(any(_find_verdict(trial, reviewed) is None for trial in _survivors(trials)))


def _read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m mutants", description=__doc__)
    parser.add_argument("--sample", type=int, default=150, help="how many mutants are tried")
    parser.add_argument("--seed", type=int, default=0, help="of the choice")
    parser.add_argument(
        "--most", type=float, default=120.0, help="seconds of tests that a mutant is put to"
    )
    parser.add_argument("--again", type=Path, help="try the survivors of this log only")
    parser.add_argument("--fresh", action="store_true", help="measure anew what tests run")
    parser.add_argument(
        "--keep", type=Path, default=_ROOT / ".mutants", help="where measurements and logs are kept"
    )
    return parser.parse_args()


def _find_survivors(log: Path) -> list[Mutant]:
    """Return the mutants of a log that survived, as they are found in the sources of now."""
    from mutants.operators import find_mutants

    found = []
    for trial in _survivors(read_trials(log)):
        old = trial.mutant
        source = (_ROOT / old.file).read_text(encoding="utf-8")
        same = (old.within, old.operator, old.before, old.after)
        found += [
            mutant
            for mutant in find_mutants(source, old.file)
            if (mutant.within, mutant.operator, mutant.before, mutant.after) == same
        ][:1]
    return found


def _survivors(trials: Iterable[Trial]) -> list[Trial]:
    return [trial for trial in trials if not trial.is_killed]


def _find_verdict(trial: Trial, reviewed: Sequence[Reviewed]) -> Reviewed | None:
    return next((each for each in reviewed if each.means(trial.mutant)), None)


def _tell(trial: Trial, count: str) -> None:
    mutant = trial.mutant
    where = f"{mutant.file}:{mutant.number}"
    told = f"{count} {trial.fate} {trial.seconds:.1f} s {where} {mutant.operator} {trial.told_by}"
    print(told.rstrip(), file=sys.stderr, flush=True)


def render_outcome(trials: Sequence[Trial], reviewed: Sequence[Reviewed], root: Path) -> str:
    """Return what became of all mutants: a table by room, and each survivor with its diff.

    Args:
        trials: What became of each.
        reviewed: The reviewed list.
        root: Of the project.
    """
    rooms = sorted({name_room(trial.mutant.file) for trial in trials})
    lines = [f"{'room':24}{'mutants':>8}{'killed':>8}"]
    for room in rooms:
        of_room = [trial for trial in trials if name_room(trial.mutant.file) == room]
        lines.append(f"{room:24}{len(of_room):8}{len(of_room) - len(_survivors(of_room)):8}")
    survivors = _survivors(trials)
    verdicts = [_find_verdict(trial, reviewed) for trial in survivors]
    equivalent = sum(1 for each in verdicts if each is not None and each.verdict == "equivalent")
    killed, real = len(trials) - len(survivors), len(trials) - equivalent
    lines.append(f"{'all':24}{len(trials):8}{killed:8}  {killed / max(1, len(trials)):.1%}")
    if equivalent:
        lines.append(
            f"without the {equivalent} that do the same as the original: "
            f"{killed} of {real}, {killed / max(1, real):.1%}"
        )
    by_time = sum(1 for trial in trials if trial.fate == "time")
    lines.append(f"{by_time} of those killed took too long; the others failed a test")
    for trial, verdict in zip(survivors, verdicts, strict=True):
        lines += ["", *_describe(trial, verdict, root)]
    for entry in reviewed:
        if entry.is_stale(root):
            lines += ["", f"{LIST}: {entry.file} has no line {entry.before!r} any more; delete it"]
    return "\n".join(lines)


def _describe(trial: Trial, verdict: Reviewed | None, root: Path) -> list[str]:
    mutant = trial.mutant
    told = "new" if verdict is None else f"{verdict.verdict}: {verdict.reason}"
    source = (root / mutant.file).read_text(encoding="utf-8")
    diff = difflib.unified_diff(
        source.splitlines(), mutant.apply(source).splitlines(), n=1, lineterm=""
    )
    head = (
        f"{mutant.file}:{mutant.number} survived {trial.tests} tests ({mutant.operator}) - {told}"
    )
    return [head, *(f"    {line}" for line in [*diff][3:])]


if __name__ == "__main__":
    sys.exit(main())
