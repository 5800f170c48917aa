"""Examples: commands that stand at the end of the help of each command."""

from __future__ import annotations

__all__ = ["EXAMPLES", "write_epilog"]

EXAMPLES = {
    "run": (
        "sparq-sim run synthetic",
        "sparq-sim run synthetic --set rounds=60 --set replications=4 --open",
        "sparq-sim run experts/delay --dry-run",
    ),
    "compare": (
        "sparq-sim compare studies/synthetic",
        "sparq-sim compare studies/delay --between transit --against 2",
        "sparq-sim compare studies/synthetic --price 0.1",
    ),
    "report": ("sparq-sim report studies/synthetic --open",),
    "plot": (
        "sparq-sim plot studies/synthetic average-regret -o regret.pdf --log",
        "sparq-sim plot studies/delay sweep -o delay.svg --width 6.8",
        "sparq-sim plot studies/synthetic belief -o belief.pdf --play sparq-gp-ucb,1 --round 60",
    ),
    "export": (
        "sparq-sim export studies/synthetic summary.csv",
        "sparq-sim export studies/synthetic curve.csv --what chart:average-regret",
    ),
    "compact": ("sparq-sim compact studies/synthetic",),
    "live": ("sparq-sim live plant.toml --optimizer sparq-gp-ucb --out live/plant",),
    "list": ("sparq-sim list scenarios", "sparq-sim list --json"),
    "show": (
        "sparq-sim show synthetic",
        "sparq-sim show expert sensors.radio",
        "sparq-sim show environment plume --plot plume.html",
    ),
    "new": ("sparq-sim new expert my-expert",),
    "check": ("sparq-sim check my-study.toml",),
    "schema": ("sparq-sim schema",),
    "explain": ("sparq-sim explain studies/synthetic --play sparq-gp-ucb,1 --round 60",),
    "reproduce": ("sparq-sim reproduce studies/synthetic/rounds/KEY.parquet",),
    "diff": ("sparq-sim diff a/rounds/KEY.parquet b/rounds/KEY.parquet",),
    "watch": ("sparq-sim watch studies/synthetic --open",),
    "serve-expert": ("sparq-sim serve-expert truth --http 8765 --scenario synthetic",),
    "vopr": (
        "sparq-sim vopr --seeds 200",
        "sparq-sim vopr --seeds 5000 --from 1000 --jobs 2",
        "sparq-sim vopr --seed 11 --without feedback --rounds 4",
    ),
    "calibrate": ("sparq-sim calibrate live/plant",),
}
"""Commands by the name of the command that they show."""


def write_epilog(command: str) -> str:
    """Return the end of the help of a *command*: its examples, a line each."""
    # An empty line ends a line; without it they would be one paragraph.
    return "\n\n".join(["Examples:", *EXAMPLES[command]])
