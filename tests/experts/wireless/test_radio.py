"""What all radios have in common: how fields are checked, and the draw at a power."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from sparq_experts.wireless.presets import AnyRadio
from sparq_experts.wireless.radio import Radio


def read(**given: Any) -> Any:
    return TypeAdapter[Radio](AnyRadio).validate_python(given)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"transmit_power": 7}, "transmit_power 7 dBm has no entry in send, .* at 2, 3, 4, 10, 14"),
        ({"sleep": -1e-6}, "greater than or equal to 0"),
        ({"receive": 0.0}, "greater than 0"),
        ({"send": [[14, -0.1]]}, "greater than 0"),
        ({"send": []}, "at least 1"),
        ({"duty_limit": 0.0}, "greater than 0"),
        ({"duty_limit": 1.5}, "less than or equal to 1"),
        ({"channels": 0}, "greater than 0"),
        ({"receptions": 0}, "greater than 0"),
        ({"duty_window": 0.0}, "greater than 0"),
        ({"capture": "best"}, "'goursaud', 'flora' or 'none'"),
        ({"overhead": -1}, "greater than or equal to 0"),
        ({"retransmissions": -1}, "greater than or equal to 0"),
        ({"retransmissions": 101}, "retransmissions\n.*less than or equal to 100"),
    ],
)
def test_bad_fields_are_refused(fields: dict[str, object], reason: str) -> None:
    with pytest.raises(ValidationError, match=reason):
        read(kind="lora-sx1272-eu868", **fields)


def test_a_power_of_ones_own_is_added_with_its_draw() -> None:
    radio = read(kind="lora-sx1272-eu868", transmit_power=20, send=[[14, 0.145], [20, 0.4]])
    assert radio.send_draw == 0.4


def test_a_gateway_without_a_limit_receives_any_number() -> None:
    assert read(kind="lora-sx1272-eu868", receptions=None).receptions is None
