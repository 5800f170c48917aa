"""Attacks: each tries at a door of sparq-sim what SECURITY.md says is refused there."""
