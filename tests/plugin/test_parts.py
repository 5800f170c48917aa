from __future__ import annotations

import asyncio
import json
import pickle
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
import pytest
from numpy.random import Generator
from pydantic import TypeAdapter, ValidationError

from sparq_sim import Channel, Rules, Scenario, play, play_live
from sparq_sim.arrays import Matrix, Points, Values
from sparq_sim.cli.catalogue import KINDS, Listing
from sparq_sim.errors import PluginError, ScenarioError
from sparq_sim.fields import Positive
from sparq_sim.gp.fit import fit
from sparq_sim.gp.kernels import AnyKernel, Kernel, SpaceTime, SquaredExponential, Wiener
from sparq_sim.gp.priors import AnyPrior, Prior
from sparq_sim.messages import Estimate, Query
from sparq_sim.optimizers.gp_ucb import GPUCB
from sparq_sim.optimizers.shared.lengths import AnyLength, Length
from sparq_sim.optimizers.shared.routing import AnyRouting, Offer, Routes, Routing
from sparq_sim.optimizers.shared.schedules import QuerySchedule, Schedule
from sparq_sim.optimizers.shared.widths import AnyWidth, Occasion, Width
from sparq_sim.optimizers.sparq_gp_ucb import SparQGPUCB
from sparq_sim.optimizers.sw_gp_ucb import SWGPUCB
from sparq_sim.plugin import registry as plugins
from sparq_sim.plugin.contract import Briefing, Expert, Model, World
from sparq_sim.report.words import describe_scenario as tell
from sparq_sim.scenario.schema import build_schema
from sparq_sim.simulation.channel.draws import AnyDraw, Draw, Gamma
from sparq_sim.simulation.channel.faults import AnyFault, Fault, FaultModel
from sparq_sim.simulation.channel.noise import AnyLoss, AnyNoise, Chances, Loss, Noise
from sparq_sim.study.differences import explain_replacement
from sparq_sim.study.store.keys import list_plugins
from sparq_sim.study.store.provenance import describe_play
from sparq_sim.testing import Asker, Slope, Teller, WaitlessLoop
from tests.plugin.test_registry import Site


class Weibull(Draw):
    """Times to failure."""

    shape: Positive
    scale: Positive = 1.0

    @property
    def expected(self) -> float:
        return float(self.scale)

    def sample(self, rng: Generator, count: int) -> Values:
        return self.scale * rng.weibull(self.shape, count)


class Sawtooth(Noise):
    """Errors of one size, up or down."""

    size: Positive = 0.1

    @property
    def expected_std(self) -> float:
        return self.size

    def units(self, rng: Generator, count: int) -> Values:
        return rng.choice([-1.0, 1.0], count)

    def stds(self, points: Points, values: Values) -> float:
        return self.size


class Fridays(Loss):
    """All is lost on each fifth day."""

    days: int = 5

    def start(self, rng: Generator) -> Chances:
        return lambda moment: float(int(moment) % self.days == 0)


class Doubled(FaultModel):
    """Claims a tenth of its std."""

    tenth: float = 0.1

    @property
    def claimed_share(self) -> float:
        return self.tenth


class Linear(Kernel):
    """Straight lines."""

    slope: Positive = 1.0

    def __call__(self, a: Points, b: Points) -> Matrix:
        return 1.0 + self.slope * (a @ b.T)


class Flat(Prior):
    """Knows nothing."""

    height: float = 0.0

    def log_density(self, value: float) -> float:
        return self.height

    def slope(self, value: float) -> float:
        return 0.0


class Square(Width):
    """Grows with the square root of time."""

    factor: Positive = 1.0

    def __call__(self, occasion: Occasion) -> float:
        return self.factor * float(np.sqrt(occasion.round))


class Half(Length):
    """Half of the play."""

    share: Positive = 0.5

    def __call__(self, kernel: Kernel, briefing: Briefing) -> int:
        return 5


class Twice(Schedule):
    """Two points a round."""

    count: int = 2

    def asked(self, round_number: int) -> float:
        return self.count


class Anybody(Routing):
    """All to the first."""

    place: int = 0

    def route(self, offers: Sequence[Offer], covariance: Matrix) -> Routes:
        return {offers[self.place].name: list(range(len(covariance)))}


PARTS: dict[plugins.PartKind, tuple[Any, Model]] = {
    "draw": (AnyDraw, Weibull(shape=0.7)),
    "noise": (AnyNoise, Sawtooth()),
    "loss": (AnyLoss, Fridays(days=3)),
    "fault": (AnyFault, Doubled(share=0.2)),
    "kernel": (AnyKernel, Linear(slope=2.0)),
    "prior": (AnyPrior, Flat(height=0.5)),
    "width": (AnyWidth, Square(factor=2.0)),
    "length": (AnyLength, Half()),
    "schedule": (QuerySchedule, Twice()),
    "routing": (AnyRouting, Anybody()),
}
ALL = pytest.mark.parametrize("kind", list(PARTS))
HERE = "tests.plugin.test_parts"


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    plugins.name_of.cache_clear()
    yield Site(tmp_path, monkeypatch)
    plugins.name_of.cache_clear()


def install(site: Site, kind: plugins.PartKind, name: str = "own") -> Model:
    """Install the part of a *kind* from this module under a *name*."""
    part = PARTS[kind][1]
    group = "losses" if kind == "loss" else f"{kind}s"
    site.install("my-parts", {name: f"{HERE}:{type(part).__name__}"}, group=group)
    return part


# In Python


@ALL
def test_a_part_of_ones_own_is_taken_as_it_is(kind: plugins.PartKind) -> None:
    annotation, part = PARTS[kind]
    assert TypeAdapter(annotation).validate_python(part) is part


def test_a_part_of_another_family_is_refused() -> None:
    with pytest.raises(ValidationError, match="should be a number, or a table with a kind"):
        Channel.model_validate({"transit": Sawtooth()})


def test_a_play_runs_on_parts_of_ones_own() -> None:
    channel = Channel(
        transit=Weibull(shape=0.7, scale=0.5),
        noise=Sawtooth(),
        loss=Fridays(),
        faults=(Doubled(share=0.5),),
        cost=1,
    )
    trace = play(Asker(), Slope(), Rules(rounds=20), experts={"teller": (Teller(), channel)})
    own = trace.replies["source"] == "teller"
    assert {"answered", "lost"} <= set(trace.replies["fate"][own])
    assert f"{HERE}:Doubled" in set(trace.replies["fault"][own])
    assert set(np.round(trace.replies["std"][own & (trace.replies["fate"] == "answered")], 6)) == {
        0.01,
        0.1,
    }


class Upside(FaultModel):
    """Answers upside down."""

    async def answer(
        self,
        answer: Callable[[Query, World], Awaitable[object]],
        query: Query,
        world: World,
        *,
        deadline: float,
    ) -> object:
        given = await answer(query, world)
        return replace(given, values=-given.values) if isinstance(given, Estimate) else given


def test_a_fault_of_ones_own_changes_what_is_answered() -> None:
    def told(*faults: FaultModel) -> Values:
        experts = {"teller": (Teller(), Channel(faults=faults))}
        replies = play(Asker(), Slope(), Rules(rounds=5), experts=experts).replies
        values: Values = replies["value"][replies["source"] == "teller"]
        return values

    np.testing.assert_array_equal(told(Upside(share=1.0)), -told())


class Wrong(Weibull):
    """Gives what it should not."""

    gives: Any

    def sample(self, rng: Generator, count: int) -> Any:
        if self.gives is KeyError:
            raise KeyError("no")
        return np.full(count, self.gives) if isinstance(self.gives, float) else self.gives


@pytest.mark.parametrize(
    ("gives", "told"),
    [
        (
            -1.0,
            r"gives -1.0 for sample; expected .* of shape \(100,\) of finite numbers, 0 or more",
        ),
        (np.nan, "gives nan for sample; expected"),
        ([1.0], r"gives \[1.0\] for sample; expected an array of"),
        (np.ones(3), r"gives an array of shape \(3,\) and type float64 for sample; expected"),
        (KeyError, r"raises KeyError: 'no' \(test_parts.py:\d+ in sample\)"),
    ],
)
def test_a_draw_that_gives_no_numbers_is_refused_when_it_is_taken(gives: object, told: str) -> None:
    with pytest.raises(ValidationError, match=f"draw '{HERE}:Wrong' {told}"):
        Channel(cost=Wrong(shape=1.0, gives=gives))


class Nameless(Loss):
    """Has no chances."""

    def start(self, rng: Generator) -> Any:
        return lambda moment: "often"


class Deaf(Sawtooth):
    """Has no size."""

    def units(self, rng: Generator, count: int) -> Values:
        return rng.normal(size=(count, 1))


def test_a_noise_and_a_loss_that_give_no_numbers_are_refused_when_they_are_taken() -> None:
    with pytest.raises(
        ValidationError, match=r"Deaf' gives .* \(100, 1\) and .* for units; expected"
    ):
        Channel(noise=Deaf())
    with pytest.raises(ValidationError, match="Nameless' gives 'often' for the chance at 0; expec"):
        Channel(loss=Nameless())


class Moody(Weibull):
    """Gives something else where less than a hundred are asked for."""

    gives: Any

    def sample(self, rng: Generator, count: int) -> Any:
        return np.ones(count) if count == 100 else np.full(count, self.gives)


class Doubtful(Sawtooth):
    """Knows no size."""

    gives: Any

    def stds(self, points: Points, values: Values) -> Any:
        return self.gives


class Worse(Loss):
    """Becomes worse."""

    gives: float

    def start(self, rng: Generator) -> Chances:
        return lambda moment: self.gives if moment >= 2 else 0.0


class Guess(Expert):
    """Knows nothing."""

    async def answer(self, query: Query, world: World) -> Estimate:
        return Estimate(np.zeros(len(query.points)))


ONE = "a finite number"


@pytest.mark.parametrize(
    ("channel", "told"),
    [
        (Channel(cost=Moody(shape=1.0, gives=-5.0)), "draw .*Moody' gives -5.0 for sample"),
        (Channel(cost_per_point=Moody(shape=1.0, gives=np.nan)), "gives nan for sample"),
        (Channel(service=Moody(shape=1.0, gives=np.inf)), "gives inf for sample"),
        (Channel(transit=Moody(shape=1.0, gives=np.nan)), "gives nan for sample"),
        (Channel(transit=Moody(shape=1.0, gives="late")), "type <U4 for sample"),
        (
            Channel(loss=Worse(gives=7.0)),
            f"gives 7.0 for the chance at 2; expected {ONE} from 0 to 1",
        ),
        (Channel(loss=Worse(gives=np.nan)), "loss .*Worse' gives nan for the chance at 2"),
        (Channel(noise=Doubtful(gives=-0.1)), f"gives -0.1 for stds; expected {ONE}, 0 or more"),
        (Channel(noise=Doubtful(gives=np.full(2, np.nan))), "array .* for stds; expected"),
        (Channel(noise=Doubtful(gives=None)), "noise .*Doubtful' gives None for stds"),
        (Channel(faults=(Doubled(share=1.0, tenth=np.nan),)), "gives nan for claimed_share"),
    ],
)
def test_a_part_that_gives_nonsense_in_a_play_ends_it_and_is_named(
    channel: Channel, told: str
) -> None:
    sensor = {"sensor": (Teller(), channel)}
    with pytest.raises(PluginError, match=f"^the channel to 'sensor': .*{told}"):
        play(Asker(batch=2), Slope(), Rules(rounds=4), experts=sensor)
    with (
        asyncio.Runner(loop_factory=WaitlessLoop) as runner,
        pytest.raises(PluginError, match=f"^the channel to 'sensor': .*{told}"),
    ):
        runner.run(play_live(Asker(batch=2), Slope(), Rules(rounds=4), experts=sensor))


def test_an_agent_that_thinks_for_less_than_no_time_ends_the_play() -> None:
    with pytest.raises(PluginError, match=r"draw .*Moody' gives -1.0 for sample"):
        play(Asker(), Slope(), Rules(rounds=3, thinking=Moody(shape=1.0, gives=-1.0)))


def test_what_a_part_makes_of_what_its_base_gives_is_its_own_affair() -> None:
    class Mended(Moody):
        """Has no draws below 0."""

        def sample(self, rng: Generator, count: int) -> Values:
            drawn: Values = super().sample(rng, count)
            return np.abs(drawn)

    assert Mended(shape=1.0, gives=-2.0).sample(np.random.default_rng(0), 1) == [2.0]


def test_a_bundled_part_is_not_looked_at() -> None:
    assert not hasattr(Gamma.sample, "__wrapped__")
    assert hasattr(Weibull.sample, "__wrapped__")


def test_a_part_that_lacks_something_is_told_what(site: Site) -> None:
    source = (
        "from sparq_sim.simulation.channel.draws import Draw\n\n"
        "class Odd(Draw):\n    '''Lacks all.'''\n"
    )
    site.install("my-odd", {"odd": "my_odd:Odd"}, group="draws", my_odd=source)
    with pytest.raises(ValidationError, match=r"draw 'odd' \(my_odd:Odd\) does not define expect"):
        Channel.model_validate({"transit": {"kind": "odd"}})
    sys.modules.pop("my_odd")


# In tables


@ALL
def test_a_table_is_read_by_the_class_that_an_entry_point_names(
    kind: plugins.PartKind, site: Site
) -> None:
    annotation, adapter = PARTS[kind][0], TypeAdapter(PARTS[kind][0])
    part = install(site, kind)
    written = TypeAdapter(annotation).dump_python(part)
    assert written == {"kind": "own", **dict(part)}
    assert adapter.validate_python(written) == part
    assert adapter.validate_json(adapter.dump_json(part)) == part
    assert "own" in plugins.list_names(kind)
    assert plugins.load(kind, "own") is type(part)


@ALL
def test_an_unknown_kind_is_told_those_that_are_installed(
    kind: plugins.PartKind, site: Site
) -> None:
    install(site, kind, "splendid")
    with pytest.raises(ValidationError, match=f"no {kind} is called 'splendit': did you mean 'spl"):
        TypeAdapter(PARTS[kind][0]).validate_python({"kind": "splendit"})


@ALL
def test_without_an_entry_point_a_part_is_written_as_its_class_and_read_where_that_is_allowed(
    kind: plugins.PartKind,
) -> None:
    annotation, part = PARTS[kind]
    adapter = TypeAdapter(annotation)
    written = adapter.dump_python(part)
    assert written["kind"] == f"{HERE}:{type(part).__name__}"
    with pytest.raises(ValidationError, match="names code to import; that is off"):
        adapter.validate_python(written)
    assert adapter.validate_python(written, context={"allow_import": True}) == part


def test_a_bundled_part_is_still_written_with_the_kind_it_was_given() -> None:
    time = {"kind": "ornstein-uhlenbeck", "variance": 1.0, "length_scale": 1.0}
    kernel = TypeAdapter(AnyKernel).validate_python(time)
    assert TypeAdapter(AnyKernel).dump_python(kernel) == time
    assert TypeAdapter(AnyFault).dump_python(Fault(kind="hang"))["kind"] == "hang"


class Slow(Gamma):
    """A bundled draw, made longer."""

    factor: Positive = 2.0

    def sample(self, rng: Generator, count: int) -> Values:
        return self.factor * super().sample(rng, count)


def test_what_derives_from_a_bundled_part_is_not_taken_for_it() -> None:
    adapter: TypeAdapter[Draw] = TypeAdapter(AnyDraw)
    slow = Slow(shape=1.0, scale=2.0)
    written = adapter.dump_python(slow)
    assert written["kind"] == f"{HERE}:Slow"
    assert adapter.validate_python(written, context={"allow_import": True}) == slow


class Tagged(Draw):
    """Has a field for its kind, as bundled draws do."""

    kind: Literal["tagged", "labelled"] = "tagged"

    @property
    def expected(self) -> float:
        return 1.0

    def sample(self, rng: Generator, count: int) -> Values:
        return np.ones(count)


def test_a_part_may_have_a_field_for_its_kind(site: Site) -> None:
    site.install("my-tags", {"labelled": f"{HERE}:Tagged"}, group="draws")
    channel = Channel.model_validate({"transit": {"kind": "labelled"}})
    assert channel.transit == Tagged(kind="labelled")


def test_kernels_of_ones_own_are_taken_within_kernels() -> None:
    kernel = (Linear() + SquaredExponential()) * 2.0
    assert isinstance(kernel(np.zeros((2, 1)), np.zeros((3, 1))), np.ndarray)
    whole = SpaceTime(space=kernel, time=Wiener(rate=0.1))
    again = TypeAdapter(AnyKernel).validate_python(
        TypeAdapter(AnyKernel).dump_python(whole), context={"allow_import": True}
    )
    assert again == whole


def test_a_validator_that_breaks_is_told_of_the_kind(site: Site) -> None:
    source = (
        "from pydantic import model_validator\n"
        f"from {HERE} import Fridays\n\n\n"
        "class Broken(Fridays):\n"
        "    '''Breaks.'''\n\n"
        "    @model_validator(mode='after')\n"
        "    def _check(self):\n"
        "        raise KeyError('days')\n"
    )
    site.install("my-broken", {"broken": "my_broken:Broken"}, group="losses", my_broken=source)
    with pytest.raises(ValidationError, match=r"loss 'broken' fails on its fields: KeyError: 'd"):
        Channel.model_validate({"loss": {"kind": "broken"}})
    sys.modules.pop("my_broken")


# In scenarios

SCENARIO = """\
rounds = 12
[environment]
kind = "synthetic"
[experts.sensor]
kind = "truth"
channel.transit = { kind = "own", shape = 0.7 }
[optimizers.uniform]
kind = "uniform"
"""


def written(tmp_path: Path, text: str = SCENARIO) -> Path:
    file = tmp_path / "scenario.toml"
    file.write_text(text)
    return file


def problems(file: Path, *overrides: str) -> list[str]:
    with pytest.raises(ScenarioError) as refused:
        Scenario.load(file, overrides=overrides)
    return [line.removeprefix(f"{file}:") for line in refused.value.problems]


def test_a_class_to_import_is_swept_where_that_is_allowed(tmp_path: Path) -> None:
    text = SCENARIO.replace('{ kind = "own", shape = 0.7 }', "0.5")
    transit = f'{{ kind = "{HERE}:Weibull", shape = 0.7 }}'
    sweep = f'[sweep]\n"experts.sensor.channel.transit" = [0.5, {transit}]\n'
    expert = f'"experts.sensor.kind" = ["truth", "{HERE}:Guess"]\n'
    file = written(tmp_path, text + sweep + expert)
    assert all("add --allow-import" in each for each in problems(file))
    scenario = Scenario.load(file, allow_import=True)
    settings = [one.experts["sensor"] for _, one in scenario.settings()]
    assert [each.channel.transit for each in settings[2:]] == [Weibull(shape=0.7)] * 2
    assert [type(each.expert) is Guess for each in settings] == [False, True, False, True]
    assert scenario == pickle.loads(pickle.dumps(scenario))
    assert len(pickle.loads(pickle.dumps(scenario)).settings()) == 4


def test_a_part_of_ones_own_is_set_swept_and_written_by_its_path(
    site: Site, tmp_path: Path
) -> None:
    install(site, "draw")
    swept = '[sweep]\n"experts.sensor.channel.transit.shape" = [0.5, 2]\n'
    path = "experts.sensor.channel.transit"
    file = written(tmp_path, SCENARIO + swept)
    scenario = Scenario.load(file, overrides=[f"{path}.scale=3.0"])
    transits = [each.experts["sensor"].channel.transit for _, each in scenario.settings()]
    assert transits == [Weibull(shape=0.5, scale=3.0), Weibull(shape=2.0, scale=3.0)]
    again = Scenario.model_validate(json.loads(json.dumps(scenario.resolve())))
    assert again == scenario
    fingerprint = scenario.fingerprint("uniform")
    transit = {"kind": "own", "shape": 0.7, "scale": 3.0}
    assert fingerprint["experts"]["sensor"]["channel"]["transit"] == transit
    played = Scenario.from_fingerprint(fingerprint, seed=0, name="uniform")
    assert played.experts == scenario.experts


def test_the_kind_of_a_part_can_be_swept(site: Site, tmp_path: Path) -> None:
    install(site, "draw")
    swept = '[sweep]\nway = "list"\nsettings = [{ "experts.sensor.channel.transit.kind" = "gamma" }'
    file = written(tmp_path, f"{SCENARIO}{swept}]\n".replace("shape = 0.7", "shape = 0.7, scale=1"))
    (_, setting), *_ = Scenario.load(file).settings()
    assert setting.experts["sensor"].channel.transit == Gamma(shape=0.7, scale=1.0)


def test_what_is_wrong_with_a_part_is_told_with_line_field_and_value(
    site: Site, tmp_path: Path
) -> None:
    install(site, "draw")
    transit = "experts.sensor.channel.transit"
    file = written(tmp_path, SCENARIO.replace("shape", "shap"))
    assert problems(file) == [
        f"6: {transit}.shape: missing; add it",
        f"6: {transit}.shap: 0.7: no such field; did you mean 'shape'?",
    ]
    file = written(tmp_path, SCENARIO.replace('"own"', '"owm"'))
    assert problems(file) == [
        f"6: {transit}.kind: 'owm': no draw is called 'owm': did you mean 'own'?"
    ]
    file = written(tmp_path, SCENARIO.replace('kind = "own", ', ""))
    assert problems(file) == [f"6: {transit}.kind: missing; say which kind it is"]
    file = written(tmp_path, SCENARIO.replace("0.7", "-1"))
    assert problems(file) == [f"6: {transit}.shape: -1: should be greater than 0"]


def test_a_bundled_kind_that_a_package_claims_too_is_refused_in_a_file(
    site: Site, tmp_path: Path
) -> None:
    install(site, "draw", "gamma")
    file = written(
        tmp_path, SCENARIO.replace('"own", shape = 0.7', '"gamma", shape = 2, scale = 1')
    )
    assert problems(file) == [
        "6: experts.sensor.channel.transit.kind: 'gamma': draw 'gamma' is claimed twice: "
        f"sparq_sim.simulation.channel.draws:Gamma (sparq-sim), {HERE}:Weibull (my-parts); "
        "uninstall or rename one"
    ]


def test_the_schema_lists_bundled_and_installed_kinds(site: Site) -> None:
    install(site, "draw")
    made = build_schema()
    _, table = made["$defs"]["Channel"]["properties"]["transit"]["anyOf"]
    names = {each["$ref"].removeprefix("#/$defs/") for each in table["oneOf"]}
    kinds = {made["$defs"][name]["properties"]["kind"]["const"] for name in names}
    assert kinds == {*plugins.find_family("draw").bundled, "own"}
    assert made["$defs"]["draw: own"]["required"] == ["kind", "shape"]


def made(**fields: Any) -> Scenario:
    given = {"rounds": 3, "environment": {"kind": "synthetic"}, "optimizers": ["uniform"]}
    return Scenario.model_validate(given | fields)


def test_a_play_is_known_by_the_source_of_its_parts() -> None:
    scenario = made(
        thinking=Weibull(shape=1.0),
        feedback=Channel(noise=Sawtooth()),
        experts={"teller": (Teller(), Channel(loss=Fridays()))},
        optimizers={"sparq": SparQGPUCB(kernel=Linear() + SquaredExponential())},
    )
    used = {each["class"]: each for each in list_plugins(scenario, "sparq")}
    for part in ("Weibull", "Sawtooth", "Fridays", "Linear"):
        assert used[f"{HERE}:{part}"]["source"]


def test_a_part_whose_source_has_changed_is_named(site: Site) -> None:
    install(site, "noise", "sawtooth")
    scenario = made(feedback=Channel(noise=Sawtooth()))
    before = [
        {**each, "source": "other"} if each["class"] == f"{HERE}:Sawtooth" else each
        for each in list_plugins(scenario, "uniform")
    ]
    played = describe_play(scenario, "uniform", 0, scenario.play("uniform"), setting={})
    reason = explain_replacement(replace(played, plugins=before), scenario, "uniform")
    assert reason is not None
    assert reason.startswith("the source of noise 'sawtooth' (")


def test_a_report_tells_parts_of_ones_own(site: Site) -> None:
    install(site, "kernel", "straight")
    one = made(
        experts={"teller": (Teller(), Channel(loss=Fridays(), transit=Weibull(shape=1.0)))},
        optimizers={"gp": GPUCB(kernel=Linear(slope=2.0))},
    )
    told = {each.about: each.text for each in tell({"gp": one.fingerprint("gp")}, {})}
    assert f"Losses follow the model {HERE}:Fridays." in told["Expert: teller"]
    assert "Weibull draw (shape 1, scale 1) in transit" in told["Expert: teller"]
    assert "kernel.kind straight, kernel.slope 2" in told["Optimizer: gp"]


@ALL
def test_a_part_can_be_sent_to_another_process(kind: plugins.PartKind) -> None:
    part = PARTS[kind][1]
    again = pickle.loads(pickle.dumps(part))
    assert again == part
    assert hash(again) == hash(part)


# Kernels


def test_a_kernel_that_only_says_how_alike_points_are_has_all_the_rest() -> None:
    class Own(Kernel):
        """A squared exponential, by hand."""

        variance: Positive = 2.0
        length_scale: Positive = 0.3

        def __call__(self, a: Points, b: Points) -> Matrix:
            squares = ((a[:, None] - b[None]) ** 2).sum(axis=2)
            return np.asarray(self.variance * np.exp(-squares / (2 * self.length_scale**2)))

    own, bundled = Own(), SquaredExponential(variance=2.0, length_scale=0.3)
    points = np.random.default_rng(0).random((7, 2))
    np.testing.assert_allclose(own.diagonal(points), bundled.diagonal(points))
    np.testing.assert_allclose(
        own.gradient(points[0], points), bundled.gradient(points[0], points), atol=1e-8
    )
    for ours, theirs in zip(own.derivatives(points), bundled.derivatives(points), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-8)


@pytest.mark.parametrize("optimizer", [GPUCB, SparQGPUCB])
def test_optimizers_play_and_fit_a_kernel_of_ones_own(optimizer: type[GPUCB]) -> None:
    model = optimizer.model_validate(
        {"kernel": Linear() + SquaredExponential(), "fitting": {"plays": 4, "every": 5}}
    )
    trace = play(model, Slope(place="square"), Rules(rounds=12), experts={"teller": Teller()})
    assert len(trace) == 12


class Shifted(Linear):
    """Straight lines through a point of its own."""

    origin: float = -1.0

    def __call__(self, a: Points, b: Points) -> Matrix:
        return super().__call__(a - self.origin, b - self.origin)


class Crooked(Kernel):
    """Is no kernel."""

    way: str

    def __call__(self, a: Points, b: Points) -> Matrix:
        ones = np.ones((len(a), len(b)))
        given: dict[str, Matrix] = {
            "short": ones[0],
            "list": cast(Matrix, ones.tolist()),
            "nan": np.nan * ones,
            "lower": np.tril(ones),
            "negative": -ones,
            "indefinite": 1 - 5 * np.abs(a - b.T),
            "linear": a @ b.T,
        }
        return given[self.way]


@pytest.mark.parametrize(
    ("way", "told"),
    [
        ("short", r"gives an array of shape \(5,\) and type float64 for k of points; expected"),
        ("list", r"gives \[\[1.0, .* for k of points; expected an array of shape \(5, 5\)"),
        ("nan", "of 5 points is not finite"),
        ("lower", "of 5 points is not symmetric"),
        ("negative", "of 5 points is not positive on its diagonal"),
        ("indefinite", "of 5 points has the negative eigenvalue -"),
        ("linear", r"of 5 points .* diagonal, at \[0.0\]: .* add a `constant` kernel"),
    ],
)
def test_what_is_no_kernel_is_refused_before_the_first_round(way: str, told: str) -> None:
    with pytest.raises(PluginError, match=f"kernel '{HERE}:Crooked' {told}"):
        play(GPUCB(kernel=Crooked(way=way)), Slope(), Rules(rounds=3))


class Wild(Width):
    """Gives anything."""

    gives: Any

    def __call__(self, occasion: Occasion) -> Any:
        return self.gives


class Endless(Length):
    """Gives anything."""

    gives: Any

    def __call__(self, kernel: Kernel, briefing: Briefing) -> Any:
        return self.gives


class Vague(Schedule):
    """Gives anything."""

    gives: Any

    def asked(self, round_number: int) -> Any:
        return self.gives


class Astray(Routing):
    """Gives anything."""

    gives: Any

    def route(self, offers: Sequence[Offer], covariance: Matrix) -> Any:
        return self.gives


WIDTH = r"for beta in round 1; expected a finite number, 0 or more"
ROUNDS = "for its rounds; expected a whole number from 1 on"
ROWS = r"for the routes to 'a'; expected rows from 0 to \d+"


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"width": Wild(gives=np.nan)}, f"width '.*:Wild' gives nan {WIDTH}"),
        ({"width": Wild(gives=-3.0)}, f"width '.*:Wild' gives -3.0 {WIDTH}"),
        ({"width": Wild(gives=None)}, f"width '.*:Wild' gives None {WIDTH}"),
        ({"window": Endless(gives=np.nan)}, f"length '.*:Endless' gives nan {ROUNDS}"),
        ({"window": Endless(gives=-1)}, f"length '.*:Endless' gives -1 {ROUNDS}"),
        ({"window": Endless(gives=2.5)}, f"length '.*:Endless' gives 2.5 {ROUNDS}"),
        (
            {"schedule": Vague(gives=np.nan)},
            "schedule '.*:Vague' gives nan for the points asked",
        ),
        ({"schedule": Vague(gives="2")}, "schedule '.*:Vague' gives '2' for the points asked"),
        ({"routing": Astray(gives=None)}, "routing '.*:Astray' gives None for routes; expected"),
        ({"routing": Astray(gives={"c": [0]})}, r"gives {'c': \[0\]} for routes; .* of a, b$"),
        ({"routing": Astray(gives={"a": [99]})}, rf"gives \[99\] {ROWS}"),
        ({"routing": Astray(gives={"a": [0.0]})}, rf"gives \[0.0\] {ROWS}"),
    ],
)
def test_a_part_of_an_optimizer_that_gives_nonsense_ends_the_play_and_is_named(
    fields: dict[str, Any], told: str
) -> None:
    experts = {"a": Teller(), "b": Teller()} if "routing" in fields else {"a": Teller()}
    model = SWGPUCB if "window" in fields else SparQGPUCB
    optimizer = model(kernel=SquaredExponential(length_scale=0.3), **fields)
    with pytest.raises(PluginError, match=told):
        play(optimizer, Slope(), Rules(rounds=4), experts=experts)


def test_rows_of_a_routing_may_be_an_array() -> None:
    routing = Astray(gives={"a": np.arange(1)})
    optimizer = SparQGPUCB(kernel=SquaredExponential(length_scale=0.3), routing=routing)
    trace = play(optimizer, Slope(), Rules(rounds=4), experts={"a": Teller(), "b": Teller()})
    assert {*trace.replies["source"]} == {"reward", "a"}


def test_a_kernel_that_cannot_be_fitted_is_refused_where_it_would_be() -> None:
    assert GPUCB(kernel=Shifted()).kernel == Shifted()
    with pytest.raises(ValidationError, match=r"its origin is -1: leave out fitting\.every"):
        GPUCB.model_validate({"kernel": Shifted(), "fitting": {"every": 5}})


def test_kernels_that_are_called_alike_are_not_taken_for_each_other() -> None:
    def own(power: int) -> Kernel:
        class Own(Kernel):
            """As a notebook defines one twice."""

            scale: Positive = 1.0

            def __call__(self, a: Points, b: Points) -> Matrix:
                return np.asarray(np.exp(-self.scale * np.abs(a - b.T) ** power))

        return Own()

    points = np.linspace(0.0, 1.0, 6)
    fits = [
        fit(
            own(power),
            points[:, None],
            np.sin(6 * points),
            rng=np.random.default_rng(0),
            variances=0.01,
            starts=1,
        )
        for power in (1, 2)
    ]
    assert fits[0].log_likelihood != fits[1].log_likelihood


# Names


def test_the_command_line_lists_all_that_can_be_plugged_in() -> None:
    assert {f"sparq_sim.{several}": kind for several, kind in KINDS.items()} == plugins.GROUPS
    assert {*KINDS, "scenarios"} == set(Listing)


def test_a_kind_of_plug_in_that_there_is_not_is_refused() -> None:
    with pytest.raises(PluginError, match="no kind of plug-in is called 'draught'"):
        plugins.list_names("draught")  # type: ignore[arg-type] # what is tested
