"""Lifetime: how long a battery lasts with a fixed schedule, in closed form."""

from __future__ import annotations

__all__ = ["compute_lifetime"]


def compute_lifetime(
    energy: float,
    *,
    period: float,
    sleep: float,
    send: float,
    airtime: float,
    measure: float = 0.0,
    receive: float = 0.0,
    receiving: float = 0.0,
) -> float:
    """Compute how long a node lives that does the same in each period.

        energy / (sleep + (measure + send airtime + receive receiving) / period)

    A node is taken to draw *sleep* all the time, as the radio's other draws are far larger.

    Args:
        energy: What the battery holds, in J.
        period: Time from one packet to the next, in seconds.
        sleep: What the node draws at rest, in W.
        send: What it draws while it sends, in W.
        airtime: How long a packet is on the air, in seconds.
        measure: Energy of one measurement, in J.
        receive: What it draws while it receives or listens, in W.
        receiving: For how long it does so in each period, in seconds.

    Returns:
        The time in seconds.
    """
    return energy / (sleep + (measure + send * airtime + receive * receiving) / period)
