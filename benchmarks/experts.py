"""What experts cost: a road with a gate, retries and loss beside a plain one; a committee of five.

All times are of whole plays, for one round: an agent that does not think plays, observes and asks
about 37 points, and the trace is made. The plain road splits queries too, so that as many parcels
travel on both. The committee's members and the single expert are reached over equal channels, once
with queries that travel whole and once with split ones.

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


def asked(experts: Experts) -> Trace:
    """Play *experts* for all rounds, of whom the one called "expert" is asked."""
    return play(Steady(), Level(), Rules(rounds=ROUNDS), experts=experts)


def road(channel: Channel) -> Trace:
    """Ask one expert over a *channel*."""
    return asked({"expert": (Teller(), channel)})


def committee(channel: Channel) -> Trace:
    """Ask a committee whose members are reached over a *channel* each."""
    names = tuple(f"member {number}" for number in range(1, MEMBERS + 1))
    members = {name: (Teller(), channel) for name in names}
    return asked({**members, "expert": Committee(members=names)})


def pairs() -> list[Pair]:
    """Give the lines of this benchmark."""
    whole, split = Channel(noise=0.1), Channel(noise=0.1, split=True)
    return [
        Pair(
            "gate, retries, loss; plain road",
            lambda: road(BUSY),
            lambda: road(PLAIN),
            at_most(5),
            units=ROUNDS,
        ),
        Pair(
            f"committee of {MEMBERS}, whole; one",
            lambda: committee(whole),
            lambda: road(whole),
            at_most(MEMBERS + 1),
            units=ROUNDS,
        ),
        Pair(
            f"committee of {MEMBERS}, split; one",
            lambda: committee(split),
            lambda: road(split),
            at_most(MEMBERS + 1),
            units=ROUNDS,
        ),
    ]


if __name__ == "__main__":
    main("Experts", pairs(), repetitions=5)
