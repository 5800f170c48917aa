"""Checks: whether links close, packets fit and batteries last, told at the start with numbers."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, inf, isfinite, log10

from sparq_experts.wireless.lora import LARGEST_PAYLOADS, LoraRadio
from sparq_experts.wireless.placing import Places
from sparq_experts.wireless.radio import Radio
from sparq_sim.arrays import Matrix
from sparq_sim.errors import PluginError

__all__ = [
    "MOST_LINES",
    "DutyNeed",
    "LinkBudget",
    "SensorsWarning",
    "check_battery",
    "check_duty",
    "check_gateways",
    "check_links",
    "check_payload",
    "check_round",
    "compute_duty",
    "compute_links",
    "describe_links",
]

MOST_LINES = 12
"""How many nodes a message lists at most."""
_HEADER = (
    *("node", "gateway", "m", "rate", "sent dBm", "loss dB"),
    *("received dBm", "sensitivity dBm", "margin dB", "downlink dB"),
)


class SensorsWarning(UserWarning):
    """A warning that a sensor network cannot do all that it is asked for."""


# Links


@dataclass(frozen=True, slots=True)
class LinkBudget:
    """What becomes of the power of a node on its way to a gateway, and back.

    All powers are means: fading comes on top of them.
    """

    node: str
    """The name of the node."""
    gateway: str
    """The name of the gateway with the smallest loss."""
    distance: float
    """Between the two, in m."""
    rate: int
    """The spreading factor of LoRa; 0 for IEEE 802.15.4."""
    power: float
    """What the node sends with, in dBm."""
    highest_power: float
    """The highest power that its radio knows, in dBm."""
    loss: float
    """What is lost on the way, shadowing included, in dB."""
    sensitivity: float
    """The weakest signal that the gateway can read, in dBm."""
    downlink_margin: float
    """By how much the power of the gateway at the node exceeds what the node can read, in dB."""

    @property
    def received(self) -> float:
        """The power of the node at the gateway, in dBm."""
        return self.power - self.loss

    @property
    def margin(self) -> float:
        """By how much that exceeds the sensitivity, in dB; negative where it is out of reach."""
        return self.received - self.sensitivity


def compute_links(places: Places, losses: Matrix, radios: Sequence[Radio]) -> list[LinkBudget]:
    """Compute the link budget of each node to the gateway with the smallest loss.

    Args:
        places: Where the n nodes and the g gateways are.
        losses: From each node to each gateway, shadowing included, in dB, (n, g).
        radios: That of each node.

    Returns:
        One budget a node, in the order of the nodes.
    """
    nearest = losses.argmin(axis=1).tolist()
    return [
        LinkBudget(
            node=places.names[i],
            gateway=places.gateway_names[j],
            distance=float(places.distances[i, j]),
            rate=radio.rate,
            power=radio.transmit_power,
            highest_power=max(power for power, _ in radio.send),
            loss=float(losses[i, j]),
            sensitivity=radio.sensitivity("gateway"),
            downlink_margin=float(radio.gateway_power - losses[i, j] - radio.sensitivity("node")),
        )
        for i, (j, radio) in enumerate(zip(nearest, radios, strict=True))
    ]


def describe_links(links: Sequence[LinkBudget], most: int | None = None) -> list[str]:
    """Return a table of link budgets as lines of text, its header first.

    The last two columns are the margins of the uplink and of the downlink.

    Args:
        links: The budgets, in the order in which they are listed.
        most: How many are listed before "and N more"; None for all.
    """
    rows = [_HEADER] + [
        (
            link.node,
            link.gateway,
            f"{link.distance:.0f}",
            f"SF{link.rate}" if link.rate else "-",
            f"{link.power:.1f}",
            *(f"{link.loss:.1f}", f"{link.received:.1f}", f"{link.sensitivity:.1f}"),
            *(f"{link.margin:+.1f}", f"{link.downlink_margin:+.1f}"),
        )
        for link in links[:most]
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(
            cell.ljust(width) if place < 2 else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
    left = len(links) - len(links[:most])
    return [*lines, f"and {left} more"] if left else lines


def check_links(links: Sequence[LinkBudget], *, asked: bool = True) -> None:
    """Check that nodes reach a gateway, and that nodes that are asked hear it.

    Args:
        links: The link budget of each node.
        asked: Whether nodes are sent queries, so that they must hear the gateway, too.

    Raises:
        PluginError: No node reaches a gateway; the message has the link budget by node.
    """
    ordered = sorted(links, key=lambda link: -link.margin)
    silent = [link for link in ordered if link.margin < 0]
    if len(silent) == len(links):
        told = (
            f"{_count(len(links), 'node')}, none within reach of a gateway: the best link lacks "
            f"{-ordered[0].margin:.1f} dB"
        )
        raise PluginError(
            "\n".join([told, *describe_links(ordered, MOST_LINES), _remedy(ordered[0])])
        )
    if silent:
        told = _join([f"{link.node!r} ({link.margin:+.1f} dB)" for link in silent])
        _warn(
            f"out of reach of every gateway: {len(silent)} of {_count(len(links), 'node')}, with "
            f"margins of {told}. {_remedy(silent[0])}"
        )
    deaf = [link for link in ordered if link.margin >= 0 > link.downlink_margin]
    if asked and deaf:
        told = _join([f"{link.node!r} ({link.downlink_margin:+.1f} dB)" for link in deaf])
        _warn(
            f"nodes that reach a gateway but cannot hear it: {len(deaf)} of {len(links)}, with "
            f"downlink margins of {told}. Raise radio.gateway_power, or let nodes report without "
            "being asked"
        )


def check_gateways(names: Sequence[str], margins: Sequence[float]) -> None:
    """Warn of gateways that hear no node.

    Args:
        names: Of the gateways.
        margins: By how much the best node at each exceeds the sensitivity, in dB.
    """
    useless = [f"{n!r} ({m:+.1f} dB)" for n, m in zip(names, margins, strict=True) if m < 0]
    if useless:
        _warn(
            f"gateways that hear no node, by the margin of the best: {_join(useless)}. Move them "
            "nearer, or leave them out"
        )


def _remedy(link: LinkBudget) -> str:
    ways = ["lower `scale`", "or add a gateway that is nearer"]
    if 0 < link.rate < 12:
        ways.insert(0, f"raise radio.spreading_factor (now {link.rate})")
    if link.power < link.highest_power:
        power = f"(now {link.power:g} dBm, at most {link.highest_power:g})"
        ways.insert(0, f"raise radio.transmit_power {power}")
    return f"To reach one, {', '.join(ways) if len(ways) > 2 else ' '.join(ways)}"


# Packets


def check_payload(payload: int, radio: Radio, node: str | None = None) -> None:
    """Check that a payload fits into one packet.

    Args:
        payload: In bytes, without headers.
        radio: The radio that sends it.
        node: The name of the node that it is of; None for all nodes.

    Raises:
        PluginError: It is larger than the data rate allows; the message has the rates that would.
    """
    most = radio.largest_payload
    if payload <= most:
        return
    remedy = f"send at most {most} bytes"
    whose = f" of node {node!r}" if node else ""
    if isinstance(radio, LoraRadio):
        at_rate = f"SF{radio.rate}{whose}"
        able = {rate: size for rate, size in LARGEST_PAYLOADS.items() if size >= payload}
        if able:
            rates = ", ".join(f"SF{rate} ({able[rate]} bytes)" for rate in sorted(able))
            remedy += f", or use a spreading factor that allows more: {rates}"
        else:
            remedy += f"; no spreading factor allows more than {max(LARGEST_PAYLOADS.values())}"
    else:
        at_rate = f"the radio{whose}"
    raise PluginError(
        f"payload: {payload} bytes: {at_rate} allows {most} bytes beside {radio.overhead} bytes "
        f"of headers; {remedy}"
    )


@dataclass(frozen=True, slots=True)
class DutyNeed:
    """How much of its time a node sends, against what it may."""

    share: float
    """The share of time that the schedule needs."""
    limit: float
    """The share of time that is allowed."""
    packets: int
    """How many packets are allowed in a window."""
    shortest: float
    """The shortest period in which every packet is allowed, in s; infinite where none is."""


def compute_duty(airtime: float, every: float, *, limit: float, window: float) -> DutyNeed:
    """Compute the share of time that a schedule needs, and the shortest period that is allowed.

    A packet counts until a *window* after its end, and k = floor(limit window / airtime) packets
    may count at once. So the period must be at least (window + airtime) / k, which is a little
    more than airtime / limit.

    Args:
        airtime: Of a packet, in s.
        every: The period of packets, in s.
        limit: The share of time that is allowed; 1 for no limit.
        window: The time over which that share is counted, up to any moment, in s.
    """
    # A share such as 0.01 is not exact in binary.
    packets = floor(limit * window / airtime * (1 + 1e-10))
    shortest = (window + airtime) / packets if packets else inf
    return DutyNeed(airtime / every, limit, packets, airtime if limit >= 1 else shortest)


def check_duty(
    names: Sequence[str],
    radios: Sequence[Radio],
    airtimes: Sequence[float],
    *,
    every: float,
    field: str = "every",
    scheduled: bool = True,
) -> None:
    """Check that what nodes send in each period is within the duty-cycle limit.

    Args:
        names: Of the nodes.
        radios: That of each node, with its limit and window.
        airtimes: How long each node sends in a period, in s.
        every: The period, in s; without a schedule, the shortest time between two packets.
        field: The field that states the period.
        scheduled: Whether a packet is sent in every period. Where it is not, as with
            send-on-delta, too much is a warning.

    Raises:
        PluginError: A schedule needs more than is allowed; the message has both shares, and the
            shortest period that fits.
    """
    needs = [
        compute_duty(airtime, every, limit=radio.duty_limit, window=radio.duty_window)
        for radio, airtime in zip(radios, airtimes, strict=True)
    ]
    over = [i for i, need in enumerate(needs) if every < need.shortest * (1 - 1e-9)]
    if not over:
        return
    worst = max(over, key=lambda i: needs[i].shortest)
    need, radio = needs[worst], radios[worst]
    rate = f" (SF{radio.rate})" if radio.rate else ""
    others = f" and {_count(len(over) - 1, 'other node')}" if len(over) > 1 else ""
    text = (
        f"{field}: {every:g} s: node {names[worst]!r}{rate}{others} would send "
        f"{airtimes[worst]:.4g} s in each period, {100 * need.share:.3g} % of the time, "
        f"but the duty cycle allows {100 * need.limit:.3g} %: {_count(need.packets, 'packet')} in "
        f"{radio.duty_window:g} s. "
    )
    if isfinite(need.shortest):
        text += f"The shortest period that fits is {_round_up(need.shortest):g} s; "
    else:
        text += "No period fits, as one packet is too long; "
    lower = "use a lower spreading factor, " if radio.rate > 7 else ""
    text += f"report less often, {lower}or send a smaller payload"
    if scheduled:
        raise PluginError(text)
    _warn(f"{text}. Packets beyond the limit are not sent")


def check_round(names: Sequence[str], airtimes: Sequence[float], *, lasting: float) -> None:
    """Warn where a round is shorter than one packet, as with a wrong unit of time.

    Args:
        names: Of the nodes.
        airtimes: How long a reading of each node is on the air, in s.
        lasting: How long a round lasts, in s.
    """
    worst = max(range(len(names)), key=lambda i: airtimes[i])
    if airtimes[worst] > lasting:
        _warn(
            f"seconds: a round lasts {lasting:.4g} s, but a reading of node {names[worst]!r} is on "
            f"the air for {airtimes[worst]:.4g} s: answers come rounds later. Set `seconds` to how "
            "long a clock unit lasts"
        )


# Batteries


def check_battery(
    names: Sequence[str],
    capacities: Sequence[float],
    draws: Sequence[float],
    *,
    until: float,
    seconds: float,
) -> None:
    """Warn where batteries are expected to be empty before the play ends.

    Args:
        names: Of the nodes.
        capacities: The energy in each full battery, in J; infinite on mains.
        draws: What each node draws on average, in W, its own reports included but no query.
        until: When the play ends, in s.
        seconds: How many of them a clock unit lasts.
    """
    lifetimes = [
        capacity / draw if draw else inf for capacity, draw in zip(capacities, draws, strict=True)
    ]
    short = [i for i, lifetime in enumerate(lifetimes) if lifetime < until]
    if short:
        first = min(short, key=lambda i: lifetimes[i])
        _warn(
            f"battery: {len(short)} of {_count(len(names), 'node')} are expected to be empty "
            f"before the play ends, even if nobody asks: {names[first]!r} after "
            f"{lifetimes[first] / seconds:.4g} of {until / seconds:.4g} clock units "
            f"({capacities[first]:.4g} J at "
            f"{draws[first]:.4g} W). Choose a `listening` that sleeps more, report less often, "
            "give a larger battery, or say by "
            '`ends_when_dead` that the play ends with them ("first", or a share)'
        )


# Words


def _warn(text: str) -> None:
    warnings.warn(text, SensorsWarning, stacklevel=3)


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _join(words: Sequence[str]) -> str:
    left = len(words) - MOST_LINES
    return ", ".join(words[:MOST_LINES]) + (f" and {left} more" if left > 0 else "")


def _round_up(number: float) -> float:
    """Return a number rounded up to four digits, so that what is told suffices."""
    unit = 10.0 ** (floor(log10(number)) - 3)
    return float(ceil(number / unit * (1 - 1e-12)) * unit)
