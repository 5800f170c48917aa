"""Gathering: a study read into what its report shows."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np

from sparq_sim.analysis.cautions import cautions
from sparq_sim.analysis.curves import Curves, read_curves
from sparq_sim.analysis.levels import Level, Levels, compute_levels, note_estimates
from sparq_sim.analysis.standings import find_standings
from sparq_sim.errors import PluginError
from sparq_sim.plugin.environment import UNNAMED, Units, read_units
from sparq_sim.plugin.exits import refuse_exits
from sparq_sim.plugin.registry import load
from sparq_sim.report import words
from sparq_sim.report.data import ChartData, ReportData, series_order
from sparq_sim.report.finding import tell_finding
from sparq_sim.report.network import ShownNetwork, read_stored_networks, show_networks
from sparq_sim.report.shares import find_shares
from sparq_sim.study.choice import choose_play
from sparq_sim.study.results import Results
from sparq_sim.study.settings import Setting, agree, keep_fullest
from sparq_sim.study.store import Provenance, StoredSummary, canonical

if TYPE_CHECKING:
    from sparq_sim.report.place import PlacePicture
    from sparq_sim.report.replay import Replay
    from sparq_sim.scenario.model import Scenario

__all__ = ["MOST_POINTS", "FindLevels", "gather"]

MOST_POINTS = 250
"""Of a curve: more than a screen can show of it."""
_MOST_CURVES = 240
"""Over the rounds, in all; of more settings than that allows, some are shown."""


class FindLevels(Protocol):
    """Computes the reference levels of a scenario, as `compute_levels` does."""

    def __call__(self, scenario: Scenario, *, replications: Sequence[int]) -> Sequence[Level]:
        """Return the levels of the worlds of some *replications*, by their numbers."""


def gather(
    study: Results,
    *,
    replays: bool = True,
    films: Sequence[str] = (),
    allow_import: bool = False,
    levels: FindLevels | Literal[False] | None = None,
    curves: Curves | None = None,
    best_seen: bool = False,
    places: bool = False,
) -> ReportData:
    """Read a study into what its report shows; what cannot be read is noted, and left out.

    Args:
        study: Finished, unfinished or not begun.
        replays: Whether some plays are played again, to be watched.
        films: Names of plays to be watched in any case, as `choose_play` reads them.
        allow_import: Whether the study may name code to run, as `module:Class`.
        levels: Computes the reference levels of a scenario; by default, `compute_levels`. False
            leaves them out.
        curves: What was read of all plays; by default, they are read now, and those that are
            damaged are left out.
        best_seen: Whether regret is against the best reward seen in each play, where the best
            reward is not known.
        places: Whether it is shown where a play of each optimizer was over time.

    Returns:
        All that the report shows, without any library that draws.

    Raises:
        SparqError: Regret against the best seen is wished for, and all plays know the best; or a
            play that is named is not there.
    """
    for name in films:
        choose_play(study, name)  # Now, before what takes long.
    described = _described(study)
    planned = study.plays()
    if curves is None:
        curves = read_curves(study, most_points=MOST_POINTS, best_seen=best_seen)
        if curves.unreadable:
            study.verify(curves.unreadable)
    found = curves.found
    plays = described or [_as_described(each) for each in curves.provenances]
    optimizers = list(dict.fromkeys(str(each["optimizer"]) for each in plays))
    settings = keep_fullest([each.setting for each in found])
    warned = cautions(study, best_seen=best_seen)
    notes = [*study.notes, *study.warnings, *(caution.text for caution in warned)]
    standings = find_standings(study, best_seen=best_seen)
    kept = _choose(settings, _MOST_CURVES // max(1, len(optimizers)))
    if len(kept) < len(settings):
        notes.append(f"Of {len(settings)} settings, {len(kept)} are charted over the rounds")
    charts = ChartData(
        optimizers=optimizers,
        kinds=_find_kinds(plays),
        summaries=standings.rows,
        found=found,
        bands=sorted(curves.bands, key=lambda band: optimizers.index(band.optimizer)),
        series=series_order(curves.series),
        shares=sorted(
            find_shares(curves.series), key=lambda whole: optimizers.index(whole.optimizer)
        ),
        # They are regrets, and computed from the best rewards.
        levels=()
        if levels is False or not curves.criterion.is_regret
        else _levels(
            plays,
            kept,
            found,
            notes,
            allow_import=allow_import,
            find=levels or compute_levels,
        ),
        settings=kept or ({},),
        criterion=curves.criterion,
        units=_find_units(plays, allow_import=allow_import),
    )
    firsts = {str(each["optimizer"]): each["play"] for each in reversed(plays)}
    firsts = {name: firsts[name] for name in optimizers}
    shown: Sequence[Replay] = ()
    if replays and found:
        from sparq_sim.report.replay import play_again  # It loads all that plays.

        shown = play_again(study, order=optimizers, films=films, allow_import=allow_import)
    networks = _networks(study, optimizers, shown, notes)
    pictures = _places(study, kept, allow_import=allow_import) if places and found else ()
    return ReportData(
        title=study.title,
        folder=str(study.folder),
        finished=len(found),
        planned=max(len(planned), len(found), _planned(described)),
        notes=notes,
        finding=tell_finding(standings, charts.levels),
        paragraphs=words.describe_scenario(
            firsts,
            _swept_values(plays),
            allow_import=allow_import,
            knows_best=curves.criterion.is_regret,
        ),
        standings=standings,
        charts=charts,
        record="full" if any(each.record == "full" for each in found) else "rounds",
        machines=_machines(curves.provenances),
        plugins=_plugins(curves.provenances),
        seeds=sorted({play.seed for play in found}),
        parameters=firsts,
        commands=_commands(study, found, best_seen=best_seen),
        places=pictures,
        replays=shown,
        networks=networks,
    )


def _places(
    study: Results, settings: Sequence[Setting], *, allow_import: bool
) -> Sequence[PlacePicture]:
    from sparq_sim.report.place import read_places  # It loads all that plays.

    return read_places(study, settings, allow_import=allow_import)


def _networks(
    study: Results, order: Sequence[str], replays: Sequence[Replay], notes: list[str]
) -> list[ShownNetwork]:
    """Return the networks of each optimizer's first play: as replayed, or else as stored."""
    if not replays:
        shown, wrong = read_stored_networks(study, order=order)
        notes.extend(wrong)
        return shown
    return [
        network
        for replay in replays
        if replay.film is not None and replay.is_first
        for network in show_networks(replay.title, replay.play, replay.film.networks)
    ]


def _choose(settings: Sequence[Setting], most: int) -> list[Setting]:
    """Choose at most *most* settings, evenly."""
    if len(settings) <= most:
        return list(settings)
    return [settings[i] for i in np.linspace(0, len(settings) - 1, max(1, most)).astype(int)]


# What was to be played


def _described(study: Results) -> list[dict[str, Any]]:
    """Read what the folder says was to be played; nothing where it says nothing."""
    names = ("optimizer", "setting", "seed", "replications", "play")
    held = study.describe()
    if held is None or any(name not in each for each in held.plays for name in names):
        return []
    return [
        {name: each[name] for name in names} | {"levels": each.get("levels", True)}
        for each in held.plays
    ]


def _as_described(told: Provenance) -> dict[str, Any]:
    play = told.play
    return {
        "optimizer": play.optimizer,
        "setting": play.setting,
        "seed": play.seed,
        "play": told.fingerprint,
    }


def _planned(described: Sequence[Mapping[str, Any]]) -> int:
    return sum(each["replications"] for each in described)


def _swept_values(plays: Sequence[Mapping[str, Any]]) -> dict[str, list[object]]:
    values: dict[str, dict[str, object]] = {}
    for play in plays:
        for path, value in play["setting"].items():
            values.setdefault(path, {})[canonical(value)] = value
    return {path: list(found.values()) for path, found in values.items()}


def _find_kinds(plays: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return the kinds of optimizers that are known, by name; of one swept, the first."""
    kinds: dict[str, str] = {}
    for each in plays:
        match each["play"]:
            case {"optimizer": {"kind": str(kind)}}:
                kinds.setdefault(str(each["optimizer"]), kind)
    return kinds


def _find_units(plays: Sequence[Mapping[str, Any]], *, allow_import: bool) -> Units:
    """Return the units that all environments of the plays have in common."""
    found: list[Units] = []
    for each in plays:
        match each["play"]:
            case {"environment": {"kind": str(kind)}}:
                try:
                    model = load("environment", kind, allow_import=allow_import)
                except PluginError:  # It is not installed here, or may not be imported.
                    return UNNAMED
                found.append(read_units(model))
    return found[0] if found and all(units == found[0] for units in found) else UNNAMED


# Reference levels


def _levels(
    plays: Sequence[Mapping[str, Any]],
    settings: Sequence[Setting],
    finished: Sequence[StoredSummary],
    notes: list[str],
    *,
    allow_import: bool,
    find: FindLevels,
) -> list[Level]:
    """Compute the reference levels of the settings that are shown, a landscape once.

    They are those of the replications that are finished; of the first, where none is.
    """
    from sparq_sim.scenario.model import Scenario

    worlds: dict[str, Levels | None] = {}
    found: list[Level] = []
    for play in plays:
        charted = any(agree(play["setting"], setting) for setting in settings)
        if not (charted and play.get("levels", True)):
            continue
        fields = ("environment", "period", "rounds", "horizon")
        world = canonical([play["seed"], *(play["play"].get(name) for name in fields)])
        if world not in worlds:
            worlds[world] = None
            try:
                scenario = Scenario.from_fingerprint(
                    play["play"],
                    seed=play["seed"],
                    name=play["optimizer"],
                    allow_import=allow_import,
                )
                numbers = {each.replication for each in finished if each.seed == play["seed"]}
                with refuse_exits():
                    worlds[world] = find(scenario, replications=sorted(numbers) or [0])[0][1]
            except Exception as error:  # Of a plug-in, whatever it be: the rest can be shown.
                notes.append(f"no reference levels: {error}")
        if (level := worlds[world]) is not None:
            found.append((play["setting"], level))
    notes.extend(note_estimates(level for _, level in found))
    return found


# Provenance


def _machines(provenances: Sequence[Provenance]) -> list[dict[str, str]]:
    unique = {}
    for each in provenances:
        blas = [" ".join(str(v) for v in pool.values() if v) for pool in each.machine.blas]
        machine = {
            "Versions": ", ".join(f"{k} {v}" for k, v in each.machine.versions.items()),
            "BLAS": ", ".join(blas) or "unknown",
            "CPU": each.machine.cpu or "unknown",
            "Platform": each.machine.platform or "unknown",
        }
        unique[canonical(machine)] = machine
    return list(unique.values())


def _plugins(provenances: Sequence[Provenance]) -> list[str]:
    return sorted(
        {
            f"{plugin['class']} ({plugin['distribution'] or 'a script'} {plugin['version'] or ''})"
            for each in provenances
            for plugin in each.plugins
        }
    )


def _commands(study: Results, found: Sequence[StoredSummary], *, best_seen: bool) -> list[str]:
    """Return how this report, and a play of each optimizer, are made again."""
    # What was steered may not be there to be played again.
    firsts = {play.optimizer: play.key for play in reversed(found) if play.knows_best}
    against = ["--against", "best-seen"] * best_seen
    files = [study.folder / "rounds" / f"{key}.parquet" for key in firsts.values()]
    return [
        shlex.join(["sparq-sim", "report", str(study.folder), *against]),
        *(shlex.join(["sparq-sim", "reproduce", str(file)]) for file in files if file.is_file()),
    ]
