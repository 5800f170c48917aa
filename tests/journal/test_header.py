from __future__ import annotations

from typing import ClassVar

from sparq_sim import Channel, Expert, Rules
from sparq_sim.domain import Box
from sparq_sim.journal.codec import decode_header, encode
from sparq_sim.journal.entries import SourceTraits
from sparq_sim.journal.header import make_header
from sparq_sim.optimizers.uniform import Uniform
from sparq_sim.simulation.play import Experts, Played
from sparq_sim.testing import Slope, Teller


class Meter(Expert):
    """A real thing that does nothing twice."""

    is_real: ClassVar[bool] = True

    def honours_keys(self) -> bool:
        return True


def test_a_header_tells_what_is_played() -> None:
    experts: Experts = {"lab": Meter(), "teller": (Teller(), Channel(transit=1.0))}
    played = Played(Uniform(), Slope(), Rules(rounds=7, period=0.5), experts, Channel(), 3, 2)
    header = make_header(played, Box(0.0, 1.0), seconds=2.0, scenario={"a": [1]}, title="test")
    assert (header.optimizer, header.seed, header.replication) == ("Uniform", 3, 2)
    assert (header.rounds, header.period, header.seconds) == (7, 0.5, 2.0)
    assert header.sources == {
        "reward": SourceTraits(),
        "lab": SourceTraits(real=True, idempotent=True),
        "teller": SourceTraits(),
    }
    assert len(header.play) == 32
    assert header.play != make_header(played, Box(0.0, 1.0)).play
    assert header.versions.keys() == {"sparq_sim", "python", "numpy"}
    assert repr(decode_header(encode(header))) == repr(header)
