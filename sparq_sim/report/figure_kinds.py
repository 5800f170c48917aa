"""Kinds of figures, apart from what draws them, so that a shell offers them at once."""

from __future__ import annotations

__all__ = ["KINDS"]

KINDS = {
    "average-regret": "mean regret of the rounds so far, with bands over replications",
    "cumulative-regret": "sum of the regrets of the rounds so far, with bands over replications",
    "round-regret": "regret of each round, smoothed by a moving mean",
    "mean-reward": "mean of the rewards so far over the rounds, where the best is not known",
    "reward": "observed reward of each round, where the best is not known",
    "differences": "how much worse each optimizer is than the best, replication by replication",
    "cost": "average regret, or mean reward, against what was spent, with the Pareto front",
    "price": "regret plus, or reward minus, the price of what is spent, by the price of a unit",
    "sweep": "average regret, or mean reward, against each swept parameter",
    "heat-map": "average regret, or mean reward, by two swept parameters",
    "fates": "what became of the points asked, as shares",
    "spent": "what had been spent by each round",
    "asked": "points asked of experts per round",
    "retries": "points asked again per round, after a failure",
    "pushed": "readings per round that experts sent without being asked",
    "staleness": "how old experts' answers were on arrival",
    "shares": "shares of a whole, which optimizers note as group/part, stacked over the rounds",
    "place": "where each optimizer played over time, on the true reward, in one replication",
    "belief": "what an optimizer believed in one round of a play, beside the true reward",
    "timeline": "what became of each query of a play, a row per source",
    "network": "map, batteries and energy of a network, in the first play of an optimizer",
}
"""What can be drawn of a study; besides these, whatever was noted each round, by its name, and
`by-` with the name of a meter: average regret, or mean reward, against what the meter showed in
the end."""
