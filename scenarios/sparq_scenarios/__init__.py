"""Scenarios that come with sparq-sim."""
