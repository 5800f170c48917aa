"""Figures of a study for print: .pdf, .svg and .png files, drawn by matplotlib."""

from sparq_sim.report.figure_kinds import KINDS
from sparq_sim.report.print.figures import COLUMN, SUFFIXES, LevelOrCurve, draw, kinds, save
from sparq_sim.report.print.layout import Axis
from sparq_sim.report.print.network import draw_network

__all__ = [
    "COLUMN",
    "KINDS",
    "SUFFIXES",
    "Axis",
    "LevelOrCurve",
    "draw",
    "draw_network",
    "kinds",
    "save",
]
