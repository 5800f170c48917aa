"""Landscapes: bases for environments that are simulated, and what is measured of any landscape."""
