"""TOML: fitted channels as a scenario takes them, with comments on how well they fit."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from textwrap import wrap

from sparq_sim.errors import mask_invisible
from sparq_sim.live.calibrate.channels import FittedChannel
from sparq_sim.live.calibrate.fits import Fit
from sparq_sim.messages import REWARD
from sparq_sim.plugin.model import Model
from sparq_sim.simulation.channel.draws import Constant
from sparq_sim.simulation.channel.noise import Gaussian, Random

__all__ = ["write_toml"]

_WIDTH = 79
"""Columns of a line."""


def write_toml(channels: Mapping[str, FittedChannel], title: str) -> str:
    """Return channels as a text in TOML: tables for a scenario, and comments.

    Args:
        channels: The channels, by source.
        title: What they were fitted to.
    """
    lines = [
        *_comment(f"Channels fitted to {title}. Durations are in its clock units."),
        *_comment("Put each table into a scenario, in place of the channel that is there."),
    ]
    for channel in channels.values():
        lines += ["", *_write_channel(channel)]
    return "\n".join(lines) + "\n"


def _write_channel(channel: FittedChannel) -> Iterator[str]:
    fates = ", ".join(f"{count} {fate}" for fate, count in channel.fates.items())
    total = sum(channel.fates.values())
    name = channel.source
    yield f"[{'feedback' if name == REWARD else f'experts.{_write_key(name)}.channel'}]"
    yield from _comment(f"{total} {'request' if total == 1 else 'requests'}: {fates or 'none'}.")
    if channel.faults:
        yield from _comment(f"{channel.faults} more had an injected fault and are left out.")
    failed = sum(channel.fates.get(fate, 0) for fate in ("invalid", "unavailable"))
    if failed:
        yield from _comment(
            f"{failed} without a usable answer tell of the source, not of the way to it: a channel "
            f'can imitate them by faults = [{{ kind = "raise", share = {failed / total:.2g} }}].'
        )
    for field, fit in channel.fits.items():
        if fit.told or fit.value is not None:
            yield from _write_fit(field, fit)


def _write_fit(field: str, fit: Fit) -> Iterator[str]:
    if fit.told:
        first, *more = fit.told
        yield from _comment(f"{field}: {first}{'.' if not more else ''}")
        for i, each in enumerate(more):
            yield from _comment(each + ("." if i == len(more) - 1 else ""), indent=4)
    if fit.value is not None:
        yield from _wrap_value(field, _write_value(fit.value))


def _comment(text: str, indent: int = 0) -> list[str]:
    begin = "# " + " " * indent
    return wrap(
        mask_invisible(text),
        _WIDTH,
        initial_indent=begin,
        subsequent_indent="#     ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _wrap_value(field: str, value: str) -> Iterator[str]:
    """Yield an assignment; a list that is too long goes on in the next line, as TOML allows."""
    line = f"{field} = {value}"
    if len(line) <= _WIDTH:
        yield line
        return
    before, _, rest = line.partition("[")
    numbers, _, after = rest.partition("]")
    yield f"{before}["
    yield from wrap(numbers + ",", _WIDTH, initial_indent="    ", subsequent_indent="    ")
    yield f"]{after}"


def _write_value(value: object) -> str:
    match value:
        case Constant(value=number) | Random(probability=number):
            return _write_value(number)
        case Gaussian(std=number, claimed=None):
            return _write_value(number)
        case Model():
            given = {
                name: each
                for name, each in value
                if name == "kind" or each != type(value).model_fields[name].default
            }
            fields = ", ".join(f"{name} = {_write_value(each)}" for name, each in given.items())
            return f"{{ {fields} }}"
        case tuple():
            return f"[{', '.join(map(_write_value, value))}]"
        case bool():
            return str(value).lower()
        case float():
            # As a float, also where it is whole; "e5" alone is none in TOML.
            return repr(float(f"{value:.9g}"))
        case int():
            return str(value)
        case _:
            return json.dumps(str(value), ensure_ascii=False)


def _write_key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name, ensure_ascii=False)
