"""Questions as tests send them to servers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

from sparq_sim.messages import Estimate
from sparq_sim.remote.wire import ApplyMessage, AskMessage


def ask(
    key: str = "a", points: Sequence[Sequence[float]] = ((0.5,),), **more: Any
) -> dict[str, Any]:
    fields = {"source": "lab", "names": ["x"], "points": [list(point) for point in points]}
    times = {"asked_at": 1000.0, "play_time": 3.0, "unit": 2.0}
    return {"sparq": 1, "type": "ask", "id": key, **fields, **times, **more}


def as_bytes(**fields: Any) -> bytes:
    return json.dumps(ask(**fields)).encode()


async def add_up(message: AskMessage | ApplyMessage) -> Estimate:
    """Answer with the sum of the coordinates of each point, measured half a clock unit ago."""
    values = [sum(point) for point in message.points]
    return Estimate(values, stds=0.1, measured_at=message.play_time - 0.5)  # type: ignore[arg-type] # a list will do


async def never(message: AskMessage | ApplyMessage) -> Estimate:
    await asyncio.get_running_loop().create_future()
    raise AssertionError
