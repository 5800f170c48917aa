from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_args

import pytest

from sparq_sim.errors import PluginError, SparqError, did_you_mean
from sparq_sim.optimizers.fixed import Fixed
from sparq_sim.plugin.contract import Environment, Expert, Model, Optimizer
from sparq_sim.plugin.registry import Kind, kind_to_write, list_names, load, name_of
from sparq_sim.simulation.play import play, play_live
from sparq_sim.simulation.rules import Rules
from sparq_sim.testing import Asker, Slope, Teller

EXPERT = "from sparq_sim import Expert\n\nclass {0}(Expert):\n    '''A plug-in.'''\n"


class Site:
    """Installs distributions as pip would: a dist-info folder beside a module, on the path."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._folder = folder
        self._monkeypatch = monkeypatch
        self.modules: list[str] = []

    def install(
        self, distribution: str, entries: dict[str, str], *, group: str = "experts", **modules: str
    ) -> Path:
        folder = self._folder / f"{distribution}-{len(self.modules)}"
        info = folder / f"{distribution.replace('-', '_')}-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n"
        )
        lines = [f"{name} = {value}\n" for name, value in entries.items()]
        (info / "entry_points.txt").write_text(f"[sparq_sim.{group}]\n{''.join(lines)}")
        for module, source in modules.items():
            (folder / f"{module}.py").write_text(source)
            self.modules.append(module)
        self._monkeypatch.syspath_prepend(folder)
        return folder


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    site = Site(tmp_path, monkeypatch)
    yield site
    for module in site.modules:
        sys.modules.pop(module, None)


def test_a_plugin_with_an_init_of_its_own_is_told_what_to_write_instead(site: Site) -> None:
    source = EXPERT.format("Tide") + "    def __init__(self, lag=2.0):\n        self.lag = lag\n"
    site.install("my-tide", {"tide": "my_tide:Tide"}, my_tide=source)
    with pytest.raises(
        PluginError, match=r"Tide has an __init__ of its own, .* `lag: float = 2.0`"
    ):
        load("expert", "tide")


# Finding and loading


@pytest.mark.parametrize(
    "base",
    ["Expert", "Optimizer", "simulation.channel.draws.Draw", "simulation.channel.draws.Gamma"],
)
def test_a_plugin_with_a_kind_of_its_own_is_told_to_call_it_something_else(base: str) -> None:
    source = f"""
import sparq_sim.simulation.channel.draws

class Courier(sparq_sim.{base}):
    kind: str = "road"
"""
    with pytest.raises(
        PluginError, match=r"Courier has a field `kind` .* call the field something"
    ):
        exec(source, {"__name__": "courier"})


def test_what_a_plugin_has_within_it_may_have_a_kind() -> None:
    class Road(Model):
        kind: str = "dirt"

    assert Road(kind="paved").kind == "paved"


def test_an_expert_that_is_of_several_kinds_is_not_written_as_one() -> None:
    class Sage(Expert):
        kind: Literal["good", "bad"] = "good"

    assert kind_to_write(Sage()) == name_of(Sage)
    with pytest.raises(PluginError, match=r"Sage' has a field `kind` that is 'bad', but"):
        kind_to_write(Sage(kind="bad"))


def test_the_plugins_that_come_with_it_are_listed() -> None:
    assert "synthetic" in list_names("environment")
    assert "truth" in list_names("expert")
    assert {"uniform", "gp-ucb"} <= set(list_names("optimizer"))


@pytest.mark.parametrize("kind", get_args(Kind))
def test_names_are_sorted_and_given_once(kind: Kind) -> None:
    assert list_names(kind) == sorted(set(list_names(kind)))


def test_each_kind_is_loaded_as_its_base() -> None:
    assert issubclass(load("environment", "synthetic"), Environment)
    assert issubclass(load("expert", "truth"), Expert)
    assert issubclass(load("optimizer", "uniform"), Optimizer)


def test_an_installed_plugin_is_found_by_its_name(site: Site) -> None:
    site.install("my-tide", {"tide": "my_tide:Tide"}, my_tide=EXPERT.format("Tide"))
    assert "tide" in list_names("expert")
    loaded = load("expert", "tide")
    assert (loaded.__module__, loaded.__name__) == ("my_tide", "Tide")


def test_a_plugin_of_one_kind_is_none_of_another(site: Site) -> None:
    site.install("my-tide", {"tide": "my_tide:Tide"}, my_tide=EXPERT.format("Tide"))
    assert "tide" not in list_names("optimizer")
    with pytest.raises(PluginError, match="no optimizer is called 'tide'"):
        load("optimizer", "tide")


def test_listing_names_imports_nothing(site: Site) -> None:
    site.install("my-tide", {"tide": "my_tide:Tide"}, my_tide="raise RuntimeError('imported')")
    assert "tide" in list_names("expert")
    assert "my_tide" not in sys.modules


def test_the_same_distribution_found_twice_on_the_path_is_one(site: Site) -> None:
    for _ in range(2):
        site.install("my-tide", {"tide": "my_tide:Tide"}, my_tide=EXPERT.format("Tide"))
    assert load("expert", "tide").__name__ == "Tide"


# What can be mended


def test_a_misspelt_name_is_answered_with_the_one_that_was_meant() -> None:
    with pytest.raises(PluginError) as refused:
        load("environment", "sinthetic")
    assert str(refused.value) == ("no environment is called 'sinthetic': did you mean 'synthetic'?")


def test_a_name_unlike_any_is_answered_with_all_there_are() -> None:
    with pytest.raises(PluginError, match=r"no expert is called 'zzz': there are: .*truth"):
        load("expert", "zzz")


def test_a_plugin_error_is_one_that_a_user_can_mend() -> None:
    assert issubclass(PluginError, SparqError)


@pytest.mark.parametrize(
    ("value", "source", "complaint"),
    [
        ("my_tide:Tide", "raise RuntimeError('low water')", "RuntimeError: low water"),
        ("my_tide:Tide", "class Tide(", "SyntaxError"),
        ("my_tide:Tide", "import no_such_module", "No module named 'no_such_module'"),
        ("my_tide:Tide", "", "AttributeError: module 'my_tide' has no attribute 'Tide'"),
        ("no_such_module:Tide", "", "No module named 'no_such_module'"),
        ("my_tide:Tide", "import sys; sys.exit(3)", "SystemExit: 3"),
    ],
)
def test_a_broken_plugin_gives_one_named_error_and_the_others_still_load(
    site: Site, value: str, source: str, complaint: str
) -> None:
    site.install("my-tide", {"tide": value}, my_tide=source)
    site.install("my-buoy", {"buoy": "my_buoy:Buoy"}, my_buoy=EXPERT.format("Buoy"))
    with pytest.raises(PluginError) as refused:
        load("expert", "tide")
    message = str(refused.value)
    assert message.startswith(f"expert 'tide' ({value}) cannot be loaded: ")
    assert complaint in message
    assert {"tide", "buoy", "truth"} <= set(list_names("expert"))
    assert load("expert", "buoy").__name__ == "Buoy"
    assert issubclass(load("expert", "truth"), Expert)


def test_two_distributions_that_claim_one_name_are_both_named(site: Site) -> None:
    site.install("my-tide", {"tide": "my_tide:Tide"}, my_tide=EXPERT.format("Tide"))
    site.install("our-tide", {"tide": "our_tide:Tide"}, our_tide=EXPERT.format("Tide"))
    with pytest.raises(PluginError) as refused:
        load("expert", "tide")
    assert str(refused.value) == (
        "expert 'tide' is claimed twice: my_tide:Tide (my-tide), our_tide:Tide (our-tide); "
        "uninstall or rename one"
    )
    assert list_names("expert").count("tide") == 1


def test_two_distributions_that_claim_one_class_by_one_name_are_an_error(site: Site) -> None:
    site.install("my-tide", {"tide": "my_tide:Tide"}, my_tide=EXPERT.format("Tide"))
    site.install("our-tide", {"tide": "my_tide:Tide"})
    with pytest.raises(PluginError, match="claimed twice"):
        load("expert", "tide")


def test_a_name_of_the_house_cannot_be_taken_over(site: Site) -> None:
    site.install("my-tide", {"truth": "my_tide:Tide"}, my_tide=EXPERT.format("Tide"))
    with pytest.raises(PluginError, match=r"'truth' is claimed twice: .*sparq-sim"):
        load("expert", "truth")


def test_an_entry_point_to_a_module_is_refused_with_the_remedy(site: Site) -> None:
    site.install("my-tide", {"tide": "my_tide"}, my_tide=EXPERT.format("Tide"))
    with pytest.raises(PluginError, match="an entry point reads `name = module:Class`"):
        load("expert", "tide")


@pytest.mark.parametrize("attribute", ["Tide", "tide", "MOON"])
def test_what_is_no_subclass_of_its_base_is_refused(site: Site, attribute: str) -> None:
    source = "class Tide: pass\ndef tide(): pass\nMOON = 1.0\n"
    site.install("my-tide", {"tide": f"my_tide:{attribute}"}, my_tide=source)
    with pytest.raises(PluginError) as refused:
        load("expert", "tide")
    assert str(refused.value) == (
        f"expert 'tide' (my_tide:{attribute}) is no subclass of sparq_sim.Expert; "
        "an entry point reads `name = module:Class`"
    )


def test_an_expert_is_no_optimizer(site: Site) -> None:
    site.install(
        "my-tide", {"tide": "my_tide:Tide"}, group="optimizers", my_tide=EXPERT.format("Tide")
    )
    with pytest.raises(PluginError, match=r"is no subclass of sparq_sim\.Optimizer"):
        load("optimizer", "tide")


# Code named in a file


def test_code_is_not_imported_by_name_unless_allowed(site: Site) -> None:
    site.install("my-tide", {}, my_tide=EXPERT.format("Tide"))
    with pytest.raises(
        PluginError, match=r"'my_tide:Tide' names code .* --allow-import, or .* allow_import=True"
    ):
        load("expert", "my_tide:Tide")
    assert "my_tide" not in sys.modules


def test_code_is_imported_by_name_where_allowed(site: Site) -> None:
    site.install("my-tide", {}, my_tide=EXPERT.format("Tide"))
    assert load("expert", "my_tide:Tide", allow_import=True).__name__ == "Tide"


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("my_tide:Moon", "cannot be loaded: AttributeError"),
        ("no_such_module:Tide", "cannot be loaded: ModuleNotFoundError"),
        ("pathlib:Path", "is no subclass of sparq_sim.Expert"),
    ],
)
def test_code_imported_by_name_is_checked_like_any_plugin(
    site: Site, name: str, complaint: str
) -> None:
    site.install("my-tide", {}, my_tide=EXPERT.format("Tide"))
    with pytest.raises(PluginError, match=complaint):
        load("expert", name, allow_import=True)


@pytest.mark.parametrize(
    "name", ["my_expert:", ":Tide", ":", "my expert:Tide", "my_expert:Tide:Low"]
)
def test_half_a_class_to_import_is_told_how_to_write_one(name: str) -> None:
    with pytest.raises(
        PluginError, match=f"^expert '{name}' names no class: write `module:Class`$"
    ):
        load("expert", name, allow_import=True)


def test_allowing_imports_changes_nothing_for_installed_names() -> None:
    assert load("expert", "truth", allow_import=True) is load("expert", "truth")


# What takes part in a play


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"optimizer": Asker}, r"optimizer: .*sparq_sim\.Optimizer, as Asker\(…\) makes, not <cla"),
        ({"environment": Teller()}, r"environment: .*sparq_sim\.Environment, not Teller\("),
        ({"feedback": 3}, r"feedback: expected an instance of sparq_sim\.Channel, not 3"),
        ({"rules": 5}, r"rules: expected an instance of sparq_sim\.Rules, not 5"),
        ({"experts": {"a": 3}}, r"expert 'a': expected an instance of sparq_sim\.Expert, not 3"),
        ({"experts": {"a": (Teller(), 3)}}, r"channel of expert 'a': .*sparq_sim\.Channel, not 3"),
        ({"experts": [Teller()]}, r"experts: expected \{name: expert\}, not \[Teller"),
    ],
)
def test_what_is_no_model_takes_no_part_in_a_play(given: dict[str, Any], told: str) -> None:
    parts: dict[str, Any] = {"optimizer": Asker(), "environment": Slope(), "rules": Rules(rounds=2)}
    with pytest.raises(PluginError, match=told):
        play(**parts | given)
    with pytest.raises(PluginError, match=told):
        asyncio.run(play_live(**parts | given))


@pytest.mark.parametrize(
    ("point", "told"),
    [
        (
            (2.0,),
            r"the fixed point: \[2\.0\] lies outside the domain, .* from \[0\.0\] to \[1\.0\]",
        ),
        ((0.1, 0.2), r"\[0\.1, 0\.2\] has not one number for each coordinate of the domain: x0;"),
    ],
)
def test_a_fixed_point_outside_the_domain_is_refused(point: tuple[float, ...], told: str) -> None:
    with pytest.raises(PluginError, match=told):
        play(Fixed(point=point), Slope(), Rules(rounds=2))


# Hints


def test_the_plural_of_a_kind_is_answered_with_the_singular() -> None:
    plural: Any = "experts"
    for call in (lambda: load(plural, "truth"), lambda: list_names(plural)):
        with pytest.raises(PluginError, match="called 'experts': did you mean 'expert'"):
            call()


@pytest.mark.parametrize(
    ("known", "hint"),
    [
        (["uniform", "gp-ucb"], "did you mean 'uniform'?"),
        (["zeta", "alpha"], "there are: alpha, zeta"),
        ([], "there are none"),
    ],
)
def test_a_hint_names_what_was_meant_or_what_there_is(known: list[str], hint: str) -> None:
    assert did_you_mean("unifrom", known) == hint
