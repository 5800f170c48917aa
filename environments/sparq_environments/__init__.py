"""Environments that come with sparq-sim."""
