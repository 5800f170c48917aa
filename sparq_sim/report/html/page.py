"""The page: gather what a study has to tell, and render it as one HTML file."""

from __future__ import annotations

import base64
import json
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

import sparq_sim
from sparq_sim.analysis.cautions import cautions
from sparq_sim.analysis.summary import Band, Difference, Summary, paired, spread, summary
from sparq_sim.errors import visible
from sparq_sim.report.html import words
from sparq_sim.report.html.charts import (
    KNOWN_TRACKS,
    MOST_CURVES,
    Chart,
    Material,
    Track,
    binned,
    everything,
    some,
    thinned,
)
from sparq_sim.report.html.embed import embedded
from sparq_sim.report.html.words import Paragraph, Verdict, number
from sparq_sim.simulation import measures
from sparq_sim.simulation.measures import cumulative_regret
from sparq_sim.simulation.records import Fate
from sparq_sim.simulation.references import References
from sparq_sim.simulation.trace import NOTE, Columns, Trace
from sparq_sim.study import store
from sparq_sim.study.results import Results
from sparq_sim.study.settings import Setting, agree, brief, fullest, in_words, shown, swept
from sparq_sim.study.store import Label, Provenance, StoredSummary, StoreError

if TYPE_CHECKING:
    from jinja2 import Environment

    from sparq_sim.scenario.model import Scenario

TEMPLATES = Path(__file__).parent / "templates"
MOST_ROWS = 400
"""Of a table in the page."""
MOST_NOTES = 12
"""Columns of notes that become charts."""
FATES = {
    "answered": "answered",
    "late": "late",
    "lost": "lost",
    "refused": "refused",
    "invalid": "useless",
    "unavailable": "not known",
    "open": "still open",
}
"""What became of queries: fields of a summary, whose shares sum to 1, and their headings."""
THEME = (
    "document.documentElement.dataset.theme ="
    ' matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";'
)
"""Runs before anything is shown, so that a dark page never flashes."""
FindLevels: TypeAlias = "Callable[[Scenario], Sequence[tuple[Mapping[str, object], References]]]"
"""Finds the reference levels of a scenario, as `sparq_sim.report.terminal.levels` does."""


class Replay(Protocol):
    """A play to watch."""

    @property
    def title(self) -> str:
        """What is played, by whom."""

    def data(self) -> dict[str, Any]:
        """Give all that is shown, JSON-able."""


@dataclass(frozen=True)
class Gathered:
    """All that a page tells."""

    title: str = ""
    folder: str = ""
    finished: int = 0
    planned: int = 0
    notes: Sequence[str] = ()
    winner: str = ""
    paragraphs: Sequence[Paragraph] = ()
    verdicts: Sequence[Verdict] = ()
    material: Material = field(default_factory=Material)
    record: str = "rounds"
    machines: Sequence[Mapping[str, str]] = ()
    """What computed the plays, each combination once."""
    plugins: Sequence[str] = ()
    seeds: Sequence[int] = ()
    parameters: Mapping[str, object] = field(default_factory=dict)
    commands: Sequence[str] = ()
    replays: Sequence[Replay] = ()


# Gathering


def gathered(
    study: Results,
    *,
    replays: bool = True,
    allow_import: bool = False,
    levels: FindLevels | None = None,
) -> Gathered:
    """Read a study; what cannot be read is noted, and left out.

    With *allow_import*, the study may name code to run, as `module:Class`. *levels* finds the
    reference levels of a scenario.
    """
    described = _described(study)
    planned = study.plays()
    read = _Read(study)
    found, told = read.found, read.told
    plays = described or [_as_described(each) for each in told]
    optimizers = list(dict.fromkeys(str(each["optimizer"]) for each in plays))
    settings = fullest([each.setting for each in found])
    notes = [*study.notes, *study.warnings, *(caution.text for caution in cautions(study))]
    places = {store.canonical(dict(setting)): place for place, setting in enumerate(settings)}
    summaries = sorted(
        summary(study),
        key=lambda row: (
            places.get(store.canonical(dict(row.setting)), -1),
            row.average_regret.mean,
        ),
    )
    kept = some(settings, MOST_CURVES // max(1, len(optimizers)))
    if len(kept) < len(settings):
        notes.append(f"Of {len(settings)} settings, {len(kept)} are charted over the rounds")
    material = Material(
        optimizers=optimizers,
        summaries=summaries,
        found=found,
        bands=sorted(read.bands, key=lambda band: optimizers.index(band.optimizer)),
        tracks=_ordered(read.tracks),
        levels=_levels(plays, kept, notes, allow_import=allow_import, find=levels),
        settings=kept or ({},),
    )
    verdicts = _verdicts(study, settings, summaries)
    firsts = {str(each["optimizer"]): each["play"] for each in reversed(plays)}
    firsts = {name: firsts[name] for name in optimizers}
    return Gathered(
        title=study.title,
        folder=str(study.folder),
        finished=len(found),
        planned=max(len(planned), len(found), _planned(described)),
        notes=notes,
        winner=words.winner(verdicts) if verdicts or not summaries else words.NO_WINNER,
        paragraphs=words.scenario(firsts, _swept_values(plays), allow_import=allow_import),
        verdicts=verdicts,
        material=material,
        record="full" if any(each.record == "full" for each in found) else "rounds",
        machines=_machines(told),
        plugins=_plugins(told),
        seeds=sorted({play.seed for play in found}),
        parameters=firsts,
        commands=_commands(study, found),
        replays=_replays(study, optimizers, allow_import=allow_import) if replays and found else (),
    )


def _replays(study: Results, order: Sequence[str], *, allow_import: bool) -> Sequence[Replay]:
    from sparq_sim.report.html import replay

    return replay.replays(study, order=order, allow_import=allow_import)


def _described(study: Results) -> list[dict[str, Any]]:
    """Read what the folder says was to be played; nothing where it says nothing."""
    try:
        plays = json.loads((study.folder / store.SCENARIO).read_bytes())["plays"]
        names = ("optimizer", "setting", "seed", "replications", "play")
        return [
            {name: each[name] for name in names} | {"levels": each.get("levels", True)}
            for each in plays
        ]
    except (OSError, ValueError, KeyError, TypeError):
        return []


def _as_described(told: Provenance) -> dict[str, Any]:
    return {name: told[name] for name in ("optimizer", "setting", "seed", "play")}


def _planned(described: Sequence[Mapping[str, Any]]) -> int:
    return sum(each["replications"] for each in described)


def _swept_values(plays: Sequence[Mapping[str, Any]]) -> dict[str, list[object]]:
    values: dict[str, dict[str, object]] = {}
    for play in plays:
        for path, value in play["setting"].items():
            values.setdefault(path, {})[store.canonical(value)] = value
    return {path: list(found.values()) for path, found in values.items()}


def _levels(
    plays: Sequence[Mapping[str, Any]],
    settings: Sequence[Setting],
    notes: list[str],
    *,
    allow_import: bool,
    find: FindLevels | None,
) -> list[tuple[Setting, References]]:
    """Compute the reference levels of the settings that are shown, a world once."""
    from sparq_sim.report.terminal import estimates, levels
    from sparq_sim.scenario.model import Scenario

    worlds: dict[str, References | None] = {}
    found = []
    for play in plays:
        charted = any(agree(play["setting"], setting) for setting in settings)
        if not (charted and play.get("levels", True)):
            continue
        fields = ("environment", "period", "rounds", "horizon")
        world = store.canonical([play["seed"], *(play["play"].get(name) for name in fields)])
        if world not in worlds:
            worlds[world] = None
            try:
                scenario = Scenario.from_fingerprint(
                    play["play"],
                    seed=play["seed"],
                    name=play["optimizer"],
                    allow_import=allow_import,
                )
                worlds[world] = (find or levels)(scenario)[0][1]
            except Exception as error:  # Of a plug-in, whatever it be: the rest can be told.
                notes.append(f"no reference levels: {error}")
        if (level := worlds[world]) is not None:
            found.append((play["setting"], level))
    notes.extend(estimates(level for _, level in found))
    return found


def _verdicts(
    study: Results, settings: Sequence[Setting], summaries: Sequence[Summary]
) -> list[Verdict]:
    """Find the best and the next in each setting, and how far apart they are."""
    known: dict[tuple[str, str], list[Difference]] = {}
    verdicts = []
    for setting in settings:
        here = [
            each
            for each in summaries
            if agree(each.setting, setting) and each.average_regret.count and not each.impossible
        ]
        ranked = sorted(here, key=lambda each: each.average_regret.mean)
        if not ranked:
            continue
        best = ranked[0]
        after = next((each for each in ranked if each.optimizer != best.optimizer), None)
        difference = None
        if after is not None:
            pair = best.optimizer, after.optimizer
            if pair not in known:
                known[pair] = paired(study, *pair)
            both = store.canonical({**after.setting, **best.setting})
            alike = [d for d in known[pair] if store.canonical(dict(d.setting)) == both]
            difference = alike[0] if alike else None
        verdicts.append(Verdict(setting, best, after, difference))
    return verdicts


class _Read:
    """The plays of a study, each read once; what is spoilt is set aside, which the notes say."""

    def __init__(self, study: Results) -> None:
        groups: dict[Label, list[StoredSummary]] = {}
        for play in study.finished():
            groups.setdefault(play.label, []).append(play)
        self.found: list[StoredSummary] = []
        self.told: list[Provenance] = []
        self.bands: list[Band] = []
        self.tracks: list[Track] = []
        self._spoilt: list[str] = []
        for plays in groups.values():
            self._read(study, plays)
        if self._spoilt:
            study.store.survey(verify=self._spoilt)

    def _read(self, study: Results, plays: Sequence[StoredSummary]) -> None:
        curves: list[NDArray[np.float64]] = []
        running: dict[str, _Means] = {}
        for play in plays:
            try:
                stored = study.read(play.key)
            except StoreError:
                self._spoilt.append(play.key)
                continue
            self.found.append(play)
            self.told.append(stored.provenance)
            curves.append(cumulative_regret(stored.trace))
            for name, values in _quantities(stored.trace):
                running.setdefault(name, _Means()).add(values)
        if curves:
            self.bands.append(_band(plays[0], curves))
        for name, means in running.items():
            rounds, values = binned(means.means)
            if len(rounds) and (name != "spent" or values.any()):
                self.tracks.append(
                    Track(name, plays[0].optimizer, plays[0].setting, rounds, values)
                )


def _band(play: StoredSummary, curves: Sequence[NDArray[np.float64]]) -> Band:
    """Give the mean of curves and its interval, as `analysis.bands` does, at fewer rounds."""
    places = thinned(max(map(len, curves)))
    spreads = [spread(curve[i] for curve in curves if i < len(curve)) for i in places]
    return Band(
        optimizer=play.optimizer,
        setting=play.setting,
        rounds=places + 1,
        mean=np.array([each.mean for each in spreads]),
        low=np.array([each.low for each in spreads]),
        high=np.array([each.high for each in spreads]),
        plays=np.array([each.count for each in spreads]),
    )


class _Means:
    """Means over plays of what is known of each round."""

    def __init__(self) -> None:
        self.sums, self.counts = np.zeros(0), np.zeros(0)

    def add(self, values: NDArray[np.float64]) -> None:
        more = max(0, len(values) - len(self.sums))
        self.sums, self.counts = np.pad(self.sums, (0, more)), np.pad(self.counts, (0, more))
        known = np.isfinite(values)
        self.sums[: len(values)][known] += values[known]
        self.counts[: len(values)] += known

    @property
    def means(self) -> NDArray[np.float64]:
        means = np.full(len(self.sums), np.nan)
        np.divide(self.sums, self.counts, out=means, where=self.counts > 0)
        return means


def _ordered(tracks: Sequence[Track]) -> list[Track]:
    """Put what is known to be of interest first, and leave out what is too much."""
    first = list(KNOWN_TRACKS)
    names = sorted(
        {track.name for track in tracks},
        key=lambda name: (first.index(name) if name in first else len(first), name),
    )[: len(first) + MOST_NOTES]
    chosen = [track for track in tracks if track.name in names]
    return sorted(chosen, key=lambda track: names.index(track.name))


def _quantities(trace: Trace) -> Iterator[tuple[str, NDArray[np.float64]]]:
    """Give what is known of each round, by name."""
    yield "spent", trace.rounds["spent"]
    for name, column in trace.rounds.items():
        # The points asked are counted below, for every optimizer, where replies are kept.
        if name.startswith(NOTE) and not (name == f"{NOTE}queries" and trace.replies):
            yield f"note {name.removeprefix(NOTE)}", column
    if not trace.replies:
        return
    replies, rounds = trace.replies, len(trace)
    asked = measures.mark_asked(trace)
    for name, counted in (
        ("asked", asked),
        ("retries", measures.mark_retried(trace)),
        ("pushed", measures.mark_pushed(trace)),
    ):
        if counted.any():
            yield name, _by_round(replies, counted, rounds)
    answered = asked & (replies["fate"] == Fate.ANSWERED)
    if answered.any():
        ages = replies["arrived_at"] - replies["measured_at"]
        yield "staleness", _mean_by_round(replies, ages, answered, rounds)
    for name, column in replies.items():
        if name.startswith(NOTE):
            noted = np.isfinite(column)
            yield (
                f"reply {name.removeprefix(NOTE)}",
                _mean_by_round(replies, column, noted, rounds),
            )


def _by_round(
    replies: Columns,
    chosen: NDArray[np.bool_],
    rounds: int,
    weights: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """Count the chosen rows of each round, or sum their weights; those before the first aside."""
    places = replies["round"] - 1
    chosen = chosen & (places >= 0) & (places < rounds)
    own = None if weights is None else weights[chosen]
    return np.bincount(places[chosen], own, minlength=rounds).astype(float)


def _mean_by_round(
    replies: Columns, values: NDArray[np.float64], chosen: NDArray[np.bool_], rounds: int
) -> NDArray[np.float64]:
    counts = _by_round(replies, chosen, rounds)
    sums = _by_round(replies, chosen, rounds, values)
    means = np.full(rounds, np.nan)
    np.divide(sums, counts, out=means, where=counts > 0)
    return means


# Provenance


def _machines(told: Sequence[Provenance]) -> list[dict[str, str]]:
    unique = {}
    for each in told:
        blas = [" ".join(str(v) for v in pool.values() if v) for pool in each.get("blas", ())]
        machine = {
            "Versions": ", ".join(f"{k} {v}" for k, v in each.get("versions", {}).items()),
            "BLAS": ", ".join(blas) or "unknown",
            "CPU": str(each.get("cpu", "unknown")),
            "Platform": str(each.get("platform", "unknown")),
        }
        unique[store.canonical(machine)] = machine
    return list(unique.values())


def _plugins(told: Sequence[Provenance]) -> list[str]:
    return sorted(
        {
            f"{plugin['class']} ({plugin['distribution'] or 'a script'} {plugin['version'] or ''})"
            for each in told
            for plugin in each.get("plugins", ())
        }
    )


def _commands(study: Results, found: Sequence[StoredSummary]) -> list[str]:
    """Say how this page, and a play of each optimizer, are made again."""
    firsts = {play.optimizer: play.key for play in reversed(found)}
    files = [study.folder / "rounds" / f"{key}.parquet" for key in firsts.values()]
    return [
        shlex.join(["sparq-sim", "report", str(study.folder)]),
        *(shlex.join(["sparq-sim", "reproduce", str(file)]) for file in files if file.is_file()),
    ]


# Rendering


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    def seen(value: object) -> object:
        return visible(value) if type(value) is str else value

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=seen,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"number": number, "interval": interval, "share": share, "shown": shown}
    environment.globals |= {"brief": brief, "in_words": in_words}
    return environment


def rendered(told: Gathered) -> str:
    """Render the page."""
    from markupsafe import Markup
    from plotly.offline import get_plotlyjs

    sections = everything(told.material)
    charts = [chart for section in sections.values() for chart in section]
    scripts, styles = {"theme": THEME}, [_template("page.css")]
    # Before the charts: their script is large, and the replay need not wait for it.
    if told.replays:
        scripts["replay"] = _template("replay.js")
        styles.append(_template("replay.css"))
    if charts:
        scripts["plotly"] = get_plotlyjs()
    scripts["page"] = _template("page.js")
    hashes = " ".join(f"'sha256-{_digest(script)}'" for script in scripts.values())
    return (
        _environment()
        .get_template("page.html.j2")
        .render(
            told=told,
            policy=(
                f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; "
                "img-src data: blob:; base-uri 'none'; form-action 'none'"
            ),
            scripts={name: Markup(script) for name, script in scripts.items()},
            styles=[Markup(style) for style in styles],
            paths=swept(each.setting for each in told.material.summaries),
            summaries=told.material.summaries[:MOST_ROWS],
            fates=_fates(told.material.summaries),
            ended_early=any(each.ended_early for each in told.material.summaries),
            idle=any(each.idle > 0 for each in told.material.summaries),
            retries=any(each.retries_per_round > 0 for each in told.material.summaries),
            pushes=any(each.pushed_per_round > 0 for each in told.material.summaries),
            verdicts=told.verdicts[:MOST_ROWS] if len(told.verdicts) > 1 else (),
            levels=_different(told.material.levels)[:MOST_ROWS],
            sections=sections,
            charts=embedded({chart.name: _chart_data(chart) for chart in charts}),
            parameters=json.dumps(told.parameters, indent=1, ensure_ascii=False),
            replays=told.replays,
            replay_data=embedded([replay.data() for replay in told.replays]),
            made_at=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
            version=sparq_sim.__version__,
        )
    )


def _fates(summaries: Sequence[Summary]) -> dict[str, str]:
    """Return the headings of the fates that occurred; "answered" is always of interest."""
    return {
        fate: heading
        for fate, heading in FATES.items()
        if fate == "answered" or any(getattr(each, fate) > 0 for each in summaries)
    }


def _template(name: str) -> str:
    # As browsers read it, lest the hash be that of another text.
    return (TEMPLATES / name).read_text(encoding="utf-8").replace("\r\n", "\n")


def _digest(script: str) -> str:
    return base64.b64encode(sha256(script.encode()).digest()).decode()


def _chart_data(chart: Chart) -> dict[str, object]:
    return {"figures": chart.figures, "bySetting": chart.by_setting}


def _different(
    levels: Sequence[tuple[Setting, References]],
) -> list[tuple[Setting, References]]:
    """Give each reference level once; without a setting where there is but one."""
    unique: dict[References, Setting] = {}
    for setting, level in levels:
        unique.setdefault(level, setting)
    if len(unique) == 1:
        return [({}, level) for level in unique]
    return [(setting, level) for level, setting in unique.items()]


def interval(low: float, high: float) -> str:
    """Write an interval; nothing for one that is unknown."""
    return f"{number(low)} … {number(high)}" if isfinite(low) and isfinite(high) else ""


def share(value: float) -> str:
    """Write a share in per cent."""
    return f"{100 * value:.3g} %" if isfinite(value) else "\N{EN DASH}"
