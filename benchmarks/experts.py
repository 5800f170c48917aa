"""Experts compared: a busy channel with a plain one, and a committee with a single expert.

All times are of whole plays, for one round: an agent that computes nothing plays, observes and asks
about 37 points, and the trace is made. The busy channel has a limited capacity, retries and loss.
The plain channel splits queries too, so that as many requests are sent over both. The members of
the committee and the single expert have equal channels, once with whole queries and once with split
ones.

Run it from the root of the repository: `python -m benchmarks.experts [--check] [--json]`.
"""

from __future__ import annotations

from benchmarks.compare import Pair, at_most, main
from benchmarks.kernel import CAPACITY, MEAN_SERVICE, Level, Steady
from sparq_experts.committee import Committee
from sparq_sim import Channel, Rules, Trace, play
from sparq_sim.simulation.play import Experts
from sparq_sim.testing import Teller

ROUNDS = 500
MEMBERS = 5
LOSS = 0.1
PLAIN = Channel(split=True)
BUSY = Channel.model_validate(
    {
        "service": {"kind": "exponential", "mean": MEAN_SERVICE},
        "capacity": CAPACITY,
        "noise": 0.1,
        "loss": LOSS,
        "patience": 2.0,
        "split": True,
        "policy": {"retries": 3, "backoff": 0.1},
    }
)


def play_with(experts: Experts) -> Trace:
    """Play with *experts*, of which the one named "expert" is asked in every round."""
    return play(Steady(), Level(), Rules(rounds=ROUNDS), experts=experts)


def ask_one(channel: Channel) -> Trace:
    """Ask one expert over a *channel*."""
    return play_with({"expert": (Teller(), channel)})


def ask_committee(channel: Channel) -> Trace:
    """Ask a committee each of whose members has a *channel* like this."""
    names = tuple(f"member {number}" for number in range(1, MEMBERS + 1))
    members = {name: (Teller(), channel) for name in names}
    return play_with({**members, "expert": Committee(members=names)})


def pairs() -> list[Pair]:
    """Return the rows of this benchmark."""
    whole, split = Channel(noise=0.1), Channel(noise=0.1, split=True)
    return [
        Pair(
            "gate, retries, loss; plain road",
            lambda: ask_one(BUSY),
            lambda: ask_one(PLAIN),
            at_most(5),
            units=ROUNDS,
        ),
        Pair(
            f"committee of {MEMBERS}, whole; one",
            lambda: ask_committee(whole),
            lambda: ask_one(whole),
            at_most(MEMBERS + 1),
            units=ROUNDS,
        ),
        Pair(
            f"committee of {MEMBERS}, split; one",
            lambda: ask_committee(split),
            lambda: ask_one(split),
            at_most(MEMBERS + 1),
            units=ROUNDS,
        ),
    ]


if __name__ == "__main__":
    main("Experts", pairs(), repetitions=5)
