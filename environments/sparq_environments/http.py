"""The environment `http`: a real system, steered through a web service."""

from __future__ import annotations

from sparq_sim.remote.http import HttpAddress
from sparq_sim.remote.system import RealEnvironment

__all__ = ["Http"]


class Http(HttpAddress, RealEnvironment):
    """A real system behind a web service, which applies points and reports rewards.

    It is for live play only. In a scenario file::

        [environment]
        kind = "http"
        url = "https://plant.example/apply"
        token_env = "PLANT_TOKEN"
        bounds = [[0.0, 1.0], [20.0, 80.0]]
        names = ["valve", "temperature"]
        safe_state = [0.5, 20.0]

    Nobody knows the best reward of a real system, so a play has no regret.
    """
