"""The environment `mqtt`: a real system, steered through a broker of MQTT."""

from __future__ import annotations

from typing import Self

from pydantic import model_validator

from sparq_sim.remote.mqtt import MqttAddress
from sparq_sim.remote.system import RealEnvironment

__all__ = ["Mqtt"]


class Mqtt(MqttAddress, RealEnvironment):
    """A real system behind a broker of MQTT, which applies points and reports rewards.

    It is for live play only. Requests of the wire format are published to *topic*, and the rewards
    come to a topic of this play's own. In a scenario file::

        [environment]
        kind = "mqtt"
        host = "broker.example"
        topic = "plant/apply"
        bounds = [[0.0, 1.0]]
        names = ["valve"]
        safe_state = [0.5]

    Nobody knows the best reward of a real system, so a play has no regret.
    """

    @model_validator(mode="after")
    def _is_asked(self) -> Self:
        if not self.topic:
            raise ValueError("topic is missing: a system must be told which point to apply")
        if self.readings_topic:
            raise ValueError(
                "readings_topic has no use here: rewards come as replies; give it to an expert"
            )
        return self
