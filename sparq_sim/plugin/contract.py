"""The plug-in contract: all that the author of a plug-in derives from, implements or is handed.

| derive from | and define | which gives | which has |
|---|---|---|---|
| `Environment` | `start(rng)` | a `Landscape` | `domain`, `rewards`, `best` |
| `SteeredEnvironment` | `connect(rng)` | `Steered` | `domain`, `apply`, `make_safe`, … |
| `Expert` | `answer(query, world)`, or `start(briefing)` | `Answering` | `answer` |
| `Optimizer` | `start(briefing, rng)` | an `Agent` | `ask`, `tell` |

Plug-ins import these names from here, or from `sparq_sim`, which has the most used ones. Each is
defined and explained in the module of its kind: `environment`, `expert`, `optimizer`, `briefing`
and `model`, from which modules of this package import it.
"""

from sparq_sim.plugin.briefing import Access, Briefing, SourceTerms, round_at
from sparq_sim.plugin.environment import (
    Coarsening,
    Environment,
    Landscape,
    Observing,
    Units,
    WithCellCount,
    WithGaps,
)
from sparq_sim.plugin.expert import (
    Accounting,
    Answering,
    Broadcasting,
    Expert,
    MaybeManaged,
    Metered,
    World,
)
from sparq_sim.plugin.model import Model
from sparq_sim.plugin.optimizer import (
    Agent,
    Asks,
    Belief,
    Believing,
    Evidence,
    Optimizer,
    Restrictable,
)
from sparq_sim.plugin.steered import SafeMoment, Steered, SteeredEnvironment

__all__ = [
    "Access",
    "Accounting",
    "Agent",
    "Answering",
    "Asks",
    "Belief",
    "Believing",
    "Briefing",
    "Broadcasting",
    "Coarsening",
    "Environment",
    "Evidence",
    "Expert",
    "Landscape",
    "MaybeManaged",
    "Metered",
    "Model",
    "Observing",
    "Optimizer",
    "Restrictable",
    "SafeMoment",
    "SourceTerms",
    "Steered",
    "SteeredEnvironment",
    "Units",
    "WithCellCount",
    "WithGaps",
    "World",
    "round_at",
]
