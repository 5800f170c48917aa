"""Figures of a study for print: .pdf, .svg and .png files, drawn by matplotlib."""

from sparq_sim.report.figure_kinds import KINDS
from sparq_sim.report.print.figures import COLUMN, SUFFIXES, LevelOrCurve, draw, kinds, save
from sparq_sim.report.print.layout import Axis
from sparq_sim.report.print.network import draw_network
from sparq_sim.report.print.plays import PlayView

__all__ = [
    "COLUMN",
    "KINDS",
    "SUFFIXES",
    "Axis",
    "LevelOrCurve",
    "PlayView",
    "draw",
    "draw_network",
    "kinds",
    "save",
]
