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

    A question passes these links, and records come back through them to the asker::

        asker -> Cached -> Merged -> FallingBack -> Retrying -> RateLimited -> Connection

    A point whose answer is remembered goes no further than `Cached`, and one that somebody asks at
    the same moment waits in `Merged`. `Retrying` makes a request, and another one after a failure;
    each is held back by the rate, and put to the source. What has failed for good, `FallingBack`
    puts to another source. Without a policy, the connection is asked at once.

    Args:
        connection: The source at the end of its channel.
    """
    policy, context = connection.channel.policy, connection.context
    if policy.idle:
        return connection
    limited = RateLimited(policy.rate, connection)
    cached = Cached(
        policy.remember,
        Merged(
            policy.merge,
            FallingBack(policy, Retrying(policy, limited, connection), connection.name, context),
            context,
        ),
        context,
    )
    if context.past is not None:
        limited.recall(context.past.sent)
        cached.recall(context.past.list_asked(connection.name))
    return cached
