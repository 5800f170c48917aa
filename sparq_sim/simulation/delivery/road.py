"""The road to a source: all its links in the order in which a question meets them."""

from __future__ import annotations

from sparq_sim.simulation.delivery.connection import Connection
from sparq_sim.simulation.delivery.link import Link
from sparq_sim.simulation.delivery.rate import RateLimited
from sparq_sim.simulation.delivery.retries import FallingBack, Retrying
from sparq_sim.simulation.delivery.shared_answers import Cached, Merged

__all__ = ["build_road"]


def build_road(connection: Connection) -> Link:
    """Return the link by which a source is asked, with the policy of its channel.

    A point is looked up among remembered answers; merged with an equal one that is asked at the
    same moment; put to the fallback when all attempts have failed; attempted, again after
    failures; held back by the rate at each attempt; and put to the source.

    Args:
        connection: The source at the end of its channel.
    """
    policy, context = connection.channel.policy, connection.context
    if policy.idle:
        return connection
    limited = RateLimited(policy.rate, connection)
    return Cached(
        policy.remember,
        Merged(
            policy.merge,
            FallingBack(policy, Retrying(policy, limited, connection), connection.name, context),
            context,
        ),
        context,
    )
