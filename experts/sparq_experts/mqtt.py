"""The expert `mqtt`: a real source behind a broker of MQTT."""

from __future__ import annotations

from sparq_sim.remote.mqtt import MqttAddress
from sparq_sim.remote.source import RealExpert

__all__ = ["Mqtt"]


class Mqtt(MqttAddress, RealExpert):
    """A device or service that is asked over MQTT, or that publishes readings; for live play only.

    Questions of the wire format are published to *topic*; answers come to a topic of this play's
    own. What is published to *readings_topic* are readings that nobody asked for. In a scenario
    file::

        [experts.lab]
        kind = "mqtt"
        host = "broker.example"
        tls = true
        topic = "lab/ask"
        readings_topic = "lab/readings/+"
        username_env = "LAB_USER"
        password_env = "LAB_PASSWORD"
        timeout = 10.0

    A reading that the broker has retained counts only if it has `measured_at`: without it nobody
    knows how old it is. A lost connection is made again, and what is asked meanwhile waits for it
    until its timeout.
    """
