"""An example: a study in Python, with two optimizers and a sweep over loss, kept in a folder."""

from __future__ import annotations

import sys
from pathlib import Path

from sparq_sim import Scenario, Study
from sparq_sim.analysis.pairs import Difference, compare_optimizers
from sparq_sim.analysis.summary import summary
from sparq_sim.study.executors import InProcess

__all__ = ["main"]


def main(folder: Path, rounds: int = 100) -> list[Difference]:
    """Run or resume a study, and print its means and the paired differences.

    Args:
        folder: The folder of the study; plays that it has are not repeated.
        rounds: The number of rounds of each play.

    Returns:
        The paired differences between the two optimizers, one for each loss.
    """
    scenario = Scenario.load(
        "synthetic",
        overrides=[
            f"rounds={rounds}",
            "replications=3",
            "design=30",
            "optimizers=['tv-gp-ucb', 'sparq-gp-ucb']",
            "sweep.'experts.expert.channel.loss'=[0.0, 0.5]",
        ],
    )
    study = Study(scenario, folder)
    study.run(InProcess())
    for row in summary(study.results):
        print(f"{row.optimizer} {dict(row.setting)}: {row.average_regret.mean:.3f}")
    differences = compare_optimizers(study.results, "sparq-gp-ucb", "tv-gp-ucb")
    for each in differences:
        spread = each.difference
        print(
            f"sparq-gp-ucb less tv-gp-ucb {dict(each.setting)}: {spread.mean:+.3f} "
            f"({spread.low:+.3f} to {spread.high:+.3f})"
        )
    return differences


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "studies/small"))
