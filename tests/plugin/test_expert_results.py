from __future__ import annotations

from collections.abc import Mapping
from math import inf, isnan, nan
from typing import Any

import numpy as np
import pytest

from sparq_sim.errors import HookError
from sparq_sim.plugin.expert_results import read_accounts, read_meters


class Books:
    """Shows what it is given."""

    def __init__(self, shown: Any) -> None:
        self._shown = shown

    def meters(self, time: float) -> Mapping[str, float]:
        shown: Mapping[str, float] = self._shown
        return shown

    def accounts(self, time: float) -> Mapping[str, Mapping[str, Any]]:
        shown: Mapping[str, Mapping[str, Any]] = self._shown
        return shown


class Broken:
    def meters(self, time: float) -> Mapping[str, float]:
        raise RuntimeError("no power")

    def accounts(self, time: float) -> Mapping[str, Mapping[str, Any]]:
        raise RuntimeError("no power")


def test_meters_become_numbers() -> None:
    meters = read_meters("expert 'net'", Books({"alive": np.int64(3), "left": 0.5, "up": True}), 1)
    assert meters == {"alive": 3.0, "left": 0.5, "up": 1.0}
    assert all(type(number) is float for number in meters.values())


def test_a_meter_may_be_nan() -> None:
    assert isnan(read_meters("expert 'net'", Books({"left": nan}), 1.0)["left"])


@pytest.mark.parametrize(
    ("shown", "message"),
    [
        (None, r"meters: gives None; expected \{name: number\}"),
        ({"left": inf}, r"meters gives inf for 'left'; expected a finite number, or NaN"),
        ({"left": "much"}, r"meters gives 'much' for 'left'"),
        ({"left": np.ones(2)}, r"meters gives array\(\[1., 1.\]\) for 'left'"),
        ({"energy left": 1.0}, r"the name 'energy left' is none; use letters"),
        ({3: 1.0}, r"the name 3 is none"),
    ],
)
def test_meters_that_are_none_are_refused(shown: Any, message: str) -> None:
    with pytest.raises(HookError, match=f"^expert 'net': .*{message}"):
        read_meters("expert 'net'", Books(shown), 1.0)


def test_columns_become_arrays_of_four_types() -> None:
    given = {
        "nodes": {
            "name": np.array(["a", "bb"], dtype="<U20"),
            "left": np.array([1.0, inf], dtype=np.float32),
            "sent": np.array([1, 2], dtype=np.uint8),
            "alive": [True, False],
        },
        "packets": {"fate": []},
    }
    accounts = read_accounts("expert 'net'", Books(given), 1.0)
    types = {name: column.dtype.str for name, column in accounts["nodes"].items()}
    assert types == {"name": "<U2", "left": "<f8", "sent": "<i8", "alive": "|b1"}
    assert accounts["nodes"]["left"].tolist() == [1.0, inf]
    assert len(accounts["packets"]["fate"]) == 0


def test_columns_are_copies() -> None:
    left = np.zeros(3)
    accounts = read_accounts("expert 'net'", Books({"nodes": {"left": left}}), 1.0)
    left[:] = 1.0
    assert not accounts["nodes"]["left"].any()


@pytest.mark.parametrize(
    ("shown", "message"),
    [
        ([], r"accounts: gives \[\]; expected \{table: \{column: values\}\}"),
        ({"nodes": [1.0]}, r"table 'nodes': gives \[1.0\]; expected \{column: values\}"),
        ({"nodes": {}}, r"table 'nodes': gives no columns; leave the table out"),
        ({"my nodes": {"left": [1]}}, r"accounts: the name 'my nodes' is none"),
        ({"nodes": {"left/J": [1]}}, r"table 'nodes': the name 'left/J' is none"),
        ({"nodes": {"left": 1.0}}, r"table 'nodes', column 'left': gives an array of shape \(\)"),
        ({"nodes": {"left": [[1.0]]}}, r"column 'left': gives an array of shape \(1, 1\)"),
        ({"nodes": {"left": [1j]}}, r"column 'left': gives an array of type complex128; expected"),
        ({"nodes": {"left": [None]}}, r"column 'left': gives an array of type object"),
        ({"nodes": {"left": [[1], [1, 2]]}}, r"column 'left': gives what is no array"),
        ({"nodes": {"left": [2**64 - 1]}}, r"column 'left': gives an array of type uint64"),
        ({"nodes": {"a": [1], "b": [1, 2]}}, r"must be of equal length, not a 1, b 2"),
    ],
)
def test_accounts_that_are_none_are_refused(shown: Any, message: str) -> None:
    with pytest.raises(HookError, match=f"^expert 'net': accounts.*{message}|{message}"):
        read_accounts("expert 'net'", Books(shown), 1.0)


def test_an_error_in_a_hook_names_the_expert_the_hook_and_the_place() -> None:
    with pytest.raises(HookError, match=r"^expert 'net': meters raised RuntimeError: no power"):
        read_meters("expert 'net'", Broken(), 1.0)
    with pytest.raises(HookError, match=r"^expert 'net': accounts raised RuntimeError: no power"):
        read_accounts("expert 'net'", Broken(), 1.0)
