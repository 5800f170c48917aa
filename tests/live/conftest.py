from __future__ import annotations

from tests.remote.brokers import broker

__all__ = ["broker"]
