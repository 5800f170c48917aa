"""Channels: what a scenario declares of the way to a source and back."""
