"""The expert `sensors`: a wireless sensor network, with radios, batteries and sleep."""

from __future__ import annotations

from math import inf
from typing import Annotated, Any, Literal, Self

from pydantic import (
    Field,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    field_validator,
    model_validator,
)

from sparq_experts.wireless.battery import AnyHarvest
from sparq_experts.wireless.listening import AlwaysOn, AnyListening, Windows
from sparq_experts.wireless.lora import LoraRadio
from sparq_experts.wireless.network import Network
from sparq_experts.wireless.node_table import AnyPoint
from sparq_experts.wireless.placing import AnyPlacing, check_placing
from sparq_experts.wireless.plan import plan_network
from sparq_experts.wireless.presets import AnyRadio, LoraSx1272Eu868
from sparq_experts.wireless.propagation import AnyPathLoss, CastaliaLoss, OuluLoss, PathLoss
from sparq_experts.wireless.reporting import AnyReporting
from sparq_sim.domain import Domain
from sparq_sim.fields import Amount, Positive, Quantity, is_number
from sparq_sim.plugin.contract import Answering, Briefing, Expert

__all__ = ["Sensors"]


class Sensors(Expert):
    """A wireless sensor network: nodes that are asked by radio, or send readings unasked.

    A query goes from the nearest gateway down to the node at its point, waits until that node
    listens, has it measure, and comes back up as an answer. What that takes in time and energy,
    and whether it succeeds, follows from radio, listening and traffic: airtime, path loss,
    collisions, duty cycles and back-offs. A node whose battery is empty answers no more.

    Times and energies are in seconds and joules; *seconds* tells how long a clock unit lasts. Give
    the channel `split = true`, so that each point of a query is answered when its node answers.
    Nothing else of the channel is needed.
    """

    seconds: Annotated[Positive, Quantity("s")] = 1.0
    """How long a clock unit lasts."""
    nodes: AnyPlacing | None = None
    """Where nodes are: `{ scattered = 30, seed = 1 }`, `{ file = "nodes.csv" }` or a list such as
    `[{ name = "n1", at = [0.2, 0.4] }]`; by default one at each site of the environment."""
    gateways: tuple[AnyPoint, ...] = ()
    """Where gateways are, in coordinates of the environment; by default one in the middle."""
    scale: Positive = 1.0
    """Metres for each unit of the environment's coordinates; where they are latitude and
    longitude, metres for each metre on the earth."""
    radio: AnyRadio = LoraSx1272Eu868()
    """The radio of nodes and gateways: the name of a set of constants, as `kind`, and any constant
    that differs from it."""
    path_loss: AnyPathLoss | None = None
    """How much power is lost over a distance: the name of a set of constants, as `kind`, and any
    constant that differs from it; by default `oulu` for LoRa and `castalia-2.4ghz` otherwise."""
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    """Of the shadowing of links, which is the same in all replications."""
    battery: Annotated[PositiveFloat, Quantity("J", "2 AA cells, Castalia")] = 18_720.0
    """What a full battery holds; infinity for mains."""
    harvest: AnyHarvest | None = None
    """What nodes harvest meanwhile; by default nothing."""
    listening: AnyListening = AlwaysOn()
    """When a node can be asked: always, in windows after its own packets, or at wake-ups."""
    push: AnyReporting | None = None
    """When nodes send readings that nobody asked for; by default never."""
    payload: Annotated[PositiveInt, Quantity("bytes")] = 12
    """Size of a reading, headers not included."""
    query_payload: Annotated[NonNegativeInt, Quantity("bytes")] = 4
    """Size of a query, headers not included."""
    measuring_energy: Annotated[Amount, Quantity("J")] = 0.0
    """What a measurement takes."""
    measuring_time: Annotated[Amount, Quantity("s")] = 0.0
    """How long a measurement takes; the value is that of its end."""
    computing_time: Annotated[Amount, Quantity("s")] = 0.0
    """How long a node computes for each reading."""
    noise: Amount = 0.0
    """The std of the error of a measurement, in reward units; nodes know it, and claim it."""
    drift: Amount = 0.0
    """The std over nodes of the rate at which their calibration goes wrong, in reward units per
    clock unit; nodes do not know it, and claim nothing for it."""
    reach: Annotated[float, Field(ge=0)] = inf
    """How far from a node a point may lie for which it answers, in units of the environment's
    coordinates; where the environment has sites, a node answers for its own site only."""
    roughness: Amount | None = None
    """By how much the reward may differ for each unit of distance between point and node, added to
    the std; needed where the environment has no sites."""
    remember: Amount = 0.0
    """For how long after it was measured the newest reading of a node serves queries at the
    gateway, without the radio, in clock units."""
    cost_per_joule: Amount = 0.0
    """What the asker of a query pays for each joule that it takes of a node until its answer
    arrives, on top of the channel's cost."""
    ends_when_dead: Literal["first"] | Annotated[float, Field(gt=0, le=1)] | None = None
    """Ends the play when the `first` node is dead, or a share of them; by default never."""

    @field_validator("ends_when_dead", mode="before")
    @classmethod
    def _first_or_share(cls, given: Any) -> Any:
        if given in (None, "first") or (is_number(given) and 0 < given <= 1):
            return given
        raise ValueError(f'should be "first", or a share above 0 and at most 1, not {given!r}')

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        radio = self.radio
        if radio.retransmissions and not radio.acknowledged:
            raise ValueError(
                f"radio.retransmissions = {radio.retransmissions} without acknowledgements: nobody "
                "would know that a packet is lost; set radio.acknowledged = true, or 0"
            )
        return self

    @property
    def propagation(self) -> PathLoss:
        """How much power is lost over a distance; by default as fits the radio."""
        if self.path_loss is not None:
            return self.path_loss
        return OuluLoss() if isinstance(self.radio, LoraRadio) else CastaliaLoss()

    @property
    def report_every(self) -> float:
        """From one reading that nobody asked for to the next, in seconds; infinity for none."""
        return inf if self.push is None else self.push.every

    @property
    def tick(self) -> float:
        """How long it is at most until a node first sends of its own accord, in seconds.

        It is 0 for never.
        """
        if self.push is not None:
            return self.push.every
        return self.listening.every if isinstance(self.listening, Windows) else 0.0

    def check_play(self, until: float) -> None:
        """Check that the file of nodes can be read.

        Args:
            until: When the play ends, in clock units.

        Raises:
            PluginError: It cannot.
        """
        check_placing(self.nodes)

    def check_domain(self, domain: Domain) -> None:
        """Check that nodes lie within the field, reach a gateway, and may send what they must.

        Args:
            domain: Of the environment.

        Raises:
            PluginError: They do not; the message has the numbers and the remedy.
        """
        plan_network(self, Briefing(domain))

    def start(self, briefing: Briefing) -> Answering:
        return Network(plan_network(self, briefing))
