"""Fields are described with default, unit, sentence and source, and the tables within them."""

from __future__ import annotations

from typing import Annotated, Literal

import pytest
from pydantic import Field

from sparq_sim import Expert
from sparq_sim.cli.describe import describe_fields, describe_path
from sparq_sim.cli.main import app
from sparq_sim.errors import SparqError
from sparq_sim.fields import Amount, Positive, Quantity
from sparq_sim.messages import Estimate, Query
from sparq_sim.plugin.contract import Model, World
from sparq_sim.simulation.channel.draws import AnyDraw, Constant
from tests.cli.invoking import runner, said


class Pump(Model):
    """A pump.

    It has a second paragraph.
    """

    power: Annotated[Positive, Quantity("W", "plate on the pump", "from memory")] = 40.0
    """What it draws."""
    loss: Annotated[Amount, Quantity("m, W")] = 0.0
    """What is lost."""


class Large(Pump):
    """A large pump."""

    kind: Literal["large"] = "large"
    power: Annotated[Positive, Quantity("W", "data sheet")] = 900.0


class Small(Pump):
    """A small pump."""

    kind: Literal["small"] = "small"
    level: Annotated[int, Quantity("m")]
    """How deep the water is."""


class Chain(Model):
    """A link of a chain, which may hold another."""

    size: int = 1
    """How large it is."""
    following: tuple[Chain, ...] = ()
    """Those that hang on it."""


class Listed(Model):
    """Buckets one by one."""

    weights: tuple[float, ...]
    """Their weights."""


class Alike(Model):
    """Buckets that are alike."""

    count: int
    """How many."""
    weight: Annotated[float, Quantity("kg")] = 3.0
    """Of each."""


class Well(Expert):
    """Asks a well."""

    depth: Annotated[float, Quantity("m", standing="measured")]
    """How deep it is."""
    pump: Annotated[Large | Small, Field(discriminator="kind")] | None = Large(power=800.0)
    """What lifts the water: a table with a `kind`."""
    spare: Pump = Pump()
    """Another pump."""
    chain: Chain = Chain()
    """What holds the bucket."""
    buckets: Listed | Alike | None = None
    """What holds the water."""
    thinking: AnyDraw = Constant(value=2.0)
    """How long it takes."""
    names: list[str] = Field(default_factory=lambda: ["old"])
    """How it is called."""

    async def answer(self, query: Query, world: World) -> Estimate:
        return Estimate(world.rewards(query.points, world.clock.now))


SHOWN = """\
  depth required, in m
      How deep it is.
      Source: measured
  pump = Large(power=800.0, kind='large')
      What lifts the water: a table with a `kind`.
      kind = "large"
          A large pump.
          power = 900.0 W
              What it draws.
              Source: data sheet
          loss = 0.0 m, W
              What is lost.
      kind = "small"
          A small pump.
          power = 40.0 W
              What it draws.
              Source: plate on the pump (from memory)
          level required, in m
              How deep the water is.
          as for kind = "large": loss
  spare = Pump()
      Another pump.
      power = 40.0 W
          What it draws.
          Source: plate on the pump (from memory)
      loss = 0.0 m, W
          What is lost.
  chain = Chain()
      What holds the bucket.
      size = 1
          How large it is.
      following = ()
          Those that hang on it.
  buckets = None
      What holds the water.
      with weights
          Buckets one by one.
          weights required
              Their weights.
      with count
          Buckets that are alike.
          count required
              How many.
          weight = 3.0 kg
              Of each.
  thinking = Constant(kind='constant', value=2.0)
      How long it takes.
  names = ['old']
      How it is called."""


def test_fields_are_shown_with_default_unit_sentence_source_and_tables_within() -> None:
    assert "\n".join(describe_fields(Well)) == SHOWN


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("depth", "  depth required, in m\n      How deep it is.\n      Source: measured"),
        ("pump.large.loss", "  loss = 0.0 m, W\n      What is lost."),
        ("spare.loss", "  loss = 0.0 m, W\n      What is lost."),
        ("buckets.weight", "  weight = 3.0 kg\n      Of each."),
        ("chain.following.size", "  size = 1\n      How large it is."),
    ],
)
def test_a_field_is_found_by_its_path(path: str, shown: str) -> None:
    assert "\n".join(describe_path(Well, path)) == shown


def test_a_kind_is_found_by_its_path_with_its_whole_docstring() -> None:
    lines = describe_path(Well, "pump.small")
    assert lines[0] == "A small pump."
    assert "  loss = 0.0 m, W" in lines
    assert not any("as for" in line for line in lines)


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("pumps", "no field 'pumps': did you mean 'pump'?"),
        ("pump.tiny", "pump has no kind 'tiny': there are: large, small"),
        ("pump.larg", "pump has no kind 'larg': did you mean 'large'?"),
        ("depth.x", "depth has no fields of its own: leave out 'x'"),
        ("buckets.colour", "no field 'colour': there are: weights"),
        ("spare.colour", "no field 'colour': there are: loss, power"),
    ],
)
def test_a_path_that_leads_nowhere_is_refused(path: str, reason: str) -> None:
    with pytest.raises(SparqError) as refused:
        describe_path(Well, path)
    assert str(refused.value) == reason


def test_long_sources_are_wrapped_and_indented() -> None:
    class Wordy(Model):
        """Has a long source."""

        power: Annotated[float, Quantity("W", "word " * 40, "long-word-with-hyphens " * 9)] = 1.0

    lines = describe_fields(Wordy)
    assert len(lines) > 3
    assert all(len(line) <= 100 for line in lines)
    assert all(line.startswith("      ") for line in lines[1:])
    assert not any(line.endswith("-") for line in lines)


def test_show_prints_tables_within_a_plugin_and_finds_them_by_path(
    capsys: pytest.CaptureFixture[str],
) -> None:
    whole = runner.invoke(app, ["show", "environment", "plume"]).output
    part = runner.invoke(app, ["show", "environment", "plume.wind"]).output
    kind = runner.invoke(app, ["show", "environment", "plume.wind.gusts"]).output
    assert part.removeprefix("plume.wind\n\n") in whole
    assert '      kind = "gusts"\n          A smooth random wind' in whole
    assert kind.startswith("plume.wind.gusts\n\nA smooth random wind")
    assert "  std = 0.08\n" in kind
    assert "did you mean 'wind'?" in said(capsys, "show", "environment", "plume.wnd")
    assert "did you mean 'plume'?" in said(capsys, "show", "environment", "plum.wind")


def test_show_prints_unit_and_source_of_the_constants_of_every_radio() -> None:
    shown = runner.invoke(app, ["show", "expert", "sensors"]).output
    lines = [line.strip() for line in shown.splitlines()]
    for kind in ("lora-sx1272-eu868", "lora-whole-node", "ieee802154-cc2420"):
        assert f'kind = "{kind}"' in lines
    for words in ("sleep = 4.95e-06 W", "sleep = 5.7e-06 W", "sleep = 6.6e-05 W"):
        at = lines.index(words)
        assert lines[at + 1] == "What a node at rest draws."
        assert lines[at + 2].startswith("Source: ")
    assert "Source: CC2420: its value after reset (from memory; Castalia has -95 dBm)" in lines
    assert max(map(len, shown.splitlines())) <= 100
    one = runner.invoke(app, ["show", "expert", "sensors.radio.ieee802154-cc2420.sleep"]).output
    assert "  sleep = 6.6e-05 W\n" in one
