"""Scenarios that come with sparq-sim: TOML files by topic, and example scripts."""
