"""The expert `http`: a web service."""

from __future__ import annotations

from sparq_sim.remote.http import HttpAddress
from sparq_sim.remote.source import RealExpert

__all__ = ["Http"]


class Http(HttpAddress, RealExpert):
    """A web service that is asked by POST, in the JSON of the wire format; for live play only.

    In a scenario file::

        [experts.lab]
        kind = "http"
        url = "https://lab.example/ask"
        token_env = "LAB_TOKEN"
        timeout = 10.0
        channel = { cost = 0.5, capacity = 4 }

    The bearer token is read from the environment variable LAB_TOKEN. A redirect is not followed.
    Certificates are verified.
    """
