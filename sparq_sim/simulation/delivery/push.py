"""Push: what a source sends of its own accord, without being asked or before service ends."""

from __future__ import annotations

from math import inf, isnan
from typing import TYPE_CHECKING

from sparq_sim.errors import LiveOnlyError, PluginError
from sparq_sim.plugin.expert import Broadcasting
from sparq_sim.simulation.delivery.examine import describe_error, examine, name_blamed
from sparq_sim.simulation.delivery.request import Request
from sparq_sim.simulation.records import Fate

if TYPE_CHECKING:
    from sparq_sim.simulation.delivery.connection import Connection

__all__ = ["broadcast", "push", "start_broadcast"]


def push(connection: Connection, request: Request, given: object) -> None:
    """Put what a source sends on its way to the asker, now.

    Args:
        connection: The source's.
        request: What it answers: a request that is being served, or one of the source's own.
        given: An Estimate, if all is well.
    """
    clock = connection.context.clock
    now = clock.now
    is_new = request.process is None and isnan(request.sent_at)
    if is_new:
        if not _admit(connection, request, now):
            return
        connection.service.charges.fall_due(request, "served")
    request.served_at = now if isnan(request.served_at) else request.served_at
    request.sent_at = now if isnan(request.sent_at) else request.sent_at
    if request.process is None and not request.drawn.transit:
        # What takes no time arrives at once: the commonest reading, in half the time.
        connection.service.arrive(request, examine(given, len(request.drawn.rows), now))
    else:
        process = clock.start(_travel(connection, request, given))
        request.process = process if is_new else request.process
    # A loss is noticed when patience ends.
    if is_new and request.open and (patience := connection.channel.patience) < inf:
        connection.limit(request, now + patience)


def _admit(connection: Connection, request: Request, now: float) -> bool:
    """Charge a request of the source's own, unless it is refused, now or earlier."""
    if request.open and connection.channel.outages and connection.channel.out_at(now):
        connection.refuse(request, Fate.OUTAGE)
    elif request.open and request.cost and not connection.service.charges.admit(request):
        connection.refuse(request, Fate.BUDGET)
    if request.open:
        connection.context.in_flight[request] = None
    return request.open


async def _travel(connection: Connection, request: Request, given: object) -> None:
    clock = connection.context.clock
    measured = examine(given, len(request.drawn.rows), clock.now)
    await clock.until(clock.now + request.drawn.transit)
    connection.service.arrive(request, measured)


def start_broadcast(connection: Connection) -> None:
    """Let the source send of its own accord from now on, if it does.

    Args:
        connection: The connection to the source.
    """
    if isinstance(connection.source, Broadcasting):
        connection.context.clock.start(broadcast(connection, connection.source))


async def broadcast(connection: Connection, source: Broadcasting) -> None:
    """Run the broadcast of a *source*; if it fails, the play goes on without it.

    Args:
        connection: The connection to the source.
        source: The started source.
    """
    world = connection.own_world()
    context = connection.context
    try:
        await source.broadcast(world)
    except (LiveOnlyError, PluginError):
        raise
    except Exception as error:
        # A record must have a point; this one says nothing.
        somewhere = context.landscape.domain.cover(1)[:1]
        request = connection.own_request(world.open(somewhere))
        request.cost = 0.0
        reason = name_blamed(connection.name, Fate.INVALID, describe_error(error))
        request.fail(Fate.INVALID, reason, now=context.clock.now)
    finally:
        if world.lent is not None and world.lent.forgotten:
            connection.service.warn_of_forgotten(world.lent)
