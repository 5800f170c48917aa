"""Figures of a study for print: .pdf, .svg and .png files, drawn by matplotlib."""

from sparq_sim.report.print.figures import COLUMN, KINDS, SUFFIXES, LevelOrCurve, draw, kinds, save

__all__ = ["COLUMN", "KINDS", "SUFFIXES", "LevelOrCurve", "draw", "kinds", "save"]
