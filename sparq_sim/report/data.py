"""Data: what a report shows of a study, whatever draws it; no plotting library is needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from sparq_sim.analysis.criteria import REGRET, Criterion
from sparq_sim.analysis.curves import ROUND_REGRET, Band, Series
from sparq_sim.analysis.levels import Level, find_levels
from sparq_sim.analysis.standings import Standings
from sparq_sim.analysis.summary import Summary
from sparq_sim.plugin.environment import UNNAMED, Units
from sparq_sim.report.finding import Finding
from sparq_sim.report.looks import Look, find_look, find_looks
from sparq_sim.report.network import ShownNetwork
from sparq_sim.report.phrases import add_unit
from sparq_sim.report.shares import Shares, is_share
from sparq_sim.report.words import Paragraph
from sparq_sim.study.settings import Setting, format_setting, list_paths, list_values
from sparq_sim.study.store import StoredSummary

if TYPE_CHECKING:
    from sparq_sim.report.place import PlacePicture
    from sparq_sim.report.replay import Replay

__all__ = [
    "REFERENCES",
    "ChartData",
    "ReportData",
    "SeriesWords",
    "curve_name",
    "describe_curve",
    "describe_series",
    "kind_of_curve",
    "occurring_fates",
    "pareto_front",
    "series_order",
]

REFERENCES = {
    "uniform": "uniform, expected",
    "fixed": "best fixed point",
    "late": "one round late",
}
"""Simple policies that results are compared with: fields of `Levels`, and their names."""
_FATES = {
    "answered": "answered",
    "late": "late",
    "lost": "lost",
    "refused": "refused",
    "invalid": "useless",
    "unavailable": "not known",
    "open": "still open",
}
"""What became of points asked: fields of a summary, whose shares sum to 1, and their headings."""
_MOST_NOTES = 12
"""Notes of optimizers and sources that are shown besides the series that are known by name."""


@dataclass(frozen=True)
class ChartData:
    """What charts and figures are made of."""

    optimizers: Sequence[str] = ()
    """Names, in the order of the study."""
    kinds: Mapping[str, str] = field(default_factory=dict)
    """Kinds of optimizers by their names; where one is not known, its name stands for it."""
    summaries: Sequence[Summary] = ()
    """A row per optimizer and setting."""
    found: Sequence[StoredSummary] = ()
    """All plays."""
    bands: Sequence[Band] = ()
    """Cumulative regret, or the criterion times the rounds so far, at no more rounds than a chart
    can show."""
    series: Sequence[Series] = ()
    """Everything else that is known of each round."""
    shares: Sequence[Shares] = ()
    """Wholes that optimizers noted by their parts."""
    levels: Sequence[Level] = ()
    """What simple policies would get, in each setting."""
    settings: Sequence[Setting] = field(default=({},))
    """Those that are shown over the rounds."""
    criterion: Criterion = REGRET
    """What plays are compared by."""
    units: Units = UNNAMED
    """What rewards, coordinates and times are measured in."""

    @property
    def judged_label(self) -> str:
        """What plays are compared by, with its unit, as an axis is labelled."""
        return add_unit(self.criterion.label, self.units.reward)

    @property
    def spends(self) -> bool:
        """Whether anything was spent."""
        return any(each.spent.mean > 0 for each in self.summaries)

    @property
    def has_nothing_to_judge(self) -> bool:
        """Whether no reward was observed, where rewards are all that is known."""
        judged = (self.criterion.of(play) for play in self.found)
        return not self.criterion.is_regret and all(number is None for number in judged)

    @property
    def swept_paths(self) -> list[str]:
        """Paths of all swept parameters."""
        return list_paths(play.setting for play in self.found)

    @property
    def varied_paths(self) -> list[str]:
        """Paths of those that have several values."""
        return [path for path in self.swept_paths if len(self.values(path)) > 1]

    @cached_property
    def _looks(self) -> dict[str, Look]:
        return find_looks({name: self.kind(name) for name in self.optimizers})

    def kind(self, optimizer: str) -> str:
        """Return the kind of an optimizer.

        Args:
            optimizer: Its name.
        """
        return self.kinds.get(optimizer, optimizer)

    def look(self, optimizer: str) -> Look:
        """Return the colour, dashes and marker of an optimizer.

        Args:
            optimizer: Its name; one that is not listed has the look of its kind.
        """
        return self._looks.get(optimizer) or find_look(self.kind(optimizer))

    def values(self, path: str) -> list[object]:
        """Return the values of a swept path, numbers by their size.

        Args:
            path: In full.
        """
        return list_values((play.setting for play in self.found), path)

    def levels_in(self, setting: Setting) -> list[tuple[str, float]]:
        """Return the names and means of the reference levels that agree with a setting.

        Args:
            setting: Swept values; those that it lacks are averaged over.
        """
        known = find_levels(self.levels, setting)
        return [(name, known[field]) for field, name in REFERENCES.items() if field in known]


@dataclass(frozen=True)
class ReportData:
    """All that a report of a study shows."""

    title: str = ""
    """Of the study."""
    folder: str = ""
    """Where it is stored."""
    finished: int = 0
    """How many plays are finished."""
    planned: int = 0
    """How many there are to be."""
    notes: Sequence[str] = ()
    """What a reader must know before believing the results."""
    finding: Finding = field(default_factory=Finding)
    """What the study shows, in a few sentences."""
    paragraphs: Sequence[Paragraph] = ()
    """The scenario in words."""
    standings: Standings | None = None
    """The rows of the table, ranked; None where there is no study yet."""
    charts: ChartData = field(default_factory=ChartData)
    """What charts are made of."""
    record: str = "rounds"
    """What was recorded: "rounds" or "full"."""
    machines: Sequence[Mapping[str, str]] = ()
    """What computed the plays, each combination once."""
    plugins: Sequence[str] = ()
    """Plug-ins that took part, with their versions."""
    seeds: Sequence[int] = ()
    """Seeds of the plays."""
    parameters: Mapping[str, object] = field(default_factory=dict)
    """All parameters of the first play of each optimizer."""
    commands: Sequence[str] = ()
    """Shell commands that make the report, and a play of each optimizer, again."""
    places: Sequence[PlacePicture] = ()
    """Where optimizers played over time, a picture per setting."""
    replays: Sequence[Replay] = ()
    """Plays to watch."""
    networks: Sequence[ShownNetwork] = ()
    """The networks of those plays; without replays, of the first stored play of each optimizer."""


# Quantities over the rounds


@dataclass(frozen=True)
class SeriesWords:
    """What a quantity over the rounds is called."""

    title: str
    """Of a chart."""
    caption: str
    """A sentence on what it is."""
    label: str
    """Of an axis."""


_REWARD_SERIES = SeriesWords(
    "Reward",
    "The reward of each round, where one was observed; the mean over the plays, and over "
    "neighbouring rounds where there are many.",
    "reward",
)
_KNOWN_SERIES = {
    ROUND_REGRET: SeriesWords(
        "Regret of the round",
        "How much each round lost: a plateau is a point that is kept, a jump a mistake.",
        "regret of the round",
    ),
    "spent": SeriesWords("Spent", "Cost of all queries, up to each round.", "spent"),
    "asked": SeriesWords(
        "Points asked per round",
        "Points asked of experts, each counted once, by the round in which they were asked.",
        "points asked per round",
    ),
    "retries": SeriesWords(
        "Points asked again per round",
        "Further attempts at points that had failed.",
        "points asked again per round",
    ),
    "pushed": SeriesWords(
        "Readings sent without being asked",
        "Readings per round that reached the agent without a query.",
        "readings sent per round",
    ),
    "staleness": SeriesWords(
        "Staleness",
        "How old experts' answers were on arrival, in clock units, by the round of the query.",
        "staleness (clock units)",
    ),
    "note queries": SeriesWords(
        "Points asked per round",
        "Points that the optimizers asked experts about, as they noted them.",
        "points asked per round",
    ),
    "note kl_bound": SeriesWords(
        "The approximation: KL bound",
        "tr(Σ⁻¹(K - Q)), which bounds the mean divergence of the sparse posterior from the one "
        "that all past points would give.",
        "KL bound",
    ),
    "note kl": SeriesWords(
        "The approximation: divergence",
        "The mean Kullback-Leibler divergence of the sparse posterior; the bound lies above it.",
        "KL divergence",
    ),
    "note kl_subset": SeriesWords(
        "The approximation: divergence of the subset",
        "The same for the posterior that knows the answers and nothing else.",
        "KL divergence of the subset",
    ),
}


def kind_of_curve(criterion: Criterion, *, average: bool) -> str:
    """Return the kind of figure that shows the criterion over the rounds.

    Args:
        criterion: What plays are compared by.
        average: Whether averages, or sums, of the rounds so far are shown.
    """
    if criterion.more_is_better:
        return "mean-reward"
    return "average-regret" if average else "cumulative-regret"


def describe_curve(criterion: Criterion, *, average: bool, units: Units = UNNAMED) -> SeriesWords:
    """Return what the curves of the criterion over the rounds are called.

    Args:
        criterion: What plays are compared by.
        average: Whether they are averages, or sums, of the rounds so far.
        units: Those of the environment.
    """
    if criterion.more_is_better:
        caption = "The mean of the rewards observed up to each round, with their noise."
        return SeriesWords("Mean reward", caption, add_unit(criterion.label, units.reward))
    kind, what = ("Average", "mean") if average else ("Cumulative", "sum")
    of, caption = criterion.word, f"The {what} of the regrets of all rounds so far."
    if not average:
        caption += " While each round loses as much as the last, it is a straight line."
    if not criterion.is_regret:
        caption += (
            " Each regret is the highest reward observed in the whole play, minus the reward of "
            "the round; rounds without an observed reward count as the mean of the others."
        )
    label = add_unit(f"{kind.lower()} {of}", units.reward)
    return SeriesWords(f"{kind} {of}", caption, label)


def describe_series(name: str, units: Units = UNNAMED) -> SeriesWords:
    """Return what a quantity over the rounds is called.

    Args:
        name: As in `Series`.
        units: Those of the environment.
    """
    if name == "reward":
        return replace(_REWARD_SERIES, label=add_unit("reward", units.reward))
    if name == "staleness" and units.time:
        caption = _KNOWN_SERIES[name].caption.replace("clock units", units.time)
        return SeriesWords("Staleness", caption, add_unit("staleness", units.time))
    if name in _KNOWN_SERIES:
        return _KNOWN_SERIES[name]
    kind, _, noted = name.partition(" ")
    if kind == "meter":
        label = noted.replace("_", " ")
        caption = "A meter of an expert, as it stood when the point of the round had been played."
        return SeriesWords(f"{label[:1].upper()}{label[1:]}", caption, label)
    whose = "the optimizers" if kind == "note" else "the sources with their replies"
    label = noted.replace("_", " ") or name
    return SeriesWords(f"Noted: {noted}", f"A number noted by {whose}.", label)


def series_order(series: Sequence[Series]) -> list[Series]:
    """Return series in the order in which they are shown: rewards, then those known by name.

    Args:
        series: All there are; of many notes, only the first 12 are kept, and of many meters. Parts
            of a whole are left out: see `find_shares`.
    """
    series = [each for each in series if not is_share(each.name)]
    known = list(_KNOWN_SERIES)
    rewards = [each for each in series if each.name == "reward"]
    all_names = sorted(
        {each.name for each in series} - {"reward"},
        key=lambda name: (known.index(name) if name in known else len(known), name),
    )
    meters = [name for name in all_names if name.startswith("meter ")]
    names = [name for name in all_names if name not in meters][: len(known) + _MOST_NOTES]
    names += meters[:_MOST_NOTES]
    kept = [each for each in series if each.name in names]
    return rewards + sorted(kept, key=lambda each: names.index(each.name))


def curve_name(curve: Band | Series | Shares | Summary | StoredSummary, setting: Setting) -> str:
    """Return the name of a curve or a row: its optimizer, and what the chart does not say.

    Args:
        curve: What is drawn.
        setting: Swept values of the whole chart.
    """
    rest = {path: value for path, value in curve.setting.items() if path not in setting}
    return f"{curve.optimizer}, {format_setting(rest)}" if rest else curve.optimizer


# Rows and points


def occurring_fates(summaries: Sequence[Summary]) -> dict[str, str]:
    """Return the fates that occurred, with their headings; "answered" is always among them.

    Args:
        summaries: The rows of a table.
    """
    return {
        fate: heading
        for fate, heading in _FATES.items()
        if fate == "answered" or any(getattr(each, fate) > 0 for each in summaries)
    }


def pareto_front(points: Sequence[tuple[float, float]]) -> list[int]:
    """Find the points that no other beats in both cost and regret.

    Args:
        points: Cost and regret of each, or minus its reward: of both, less is better.

    Returns:
        Their places in *points*, by growing cost.
    """
    front: list[int] = []
    for place in sorted(range(len(points)), key=lambda i: points[i]):
        if not front or points[place][1] < points[front[-1]][1]:
            front.append(place)
    return front
