"""Experts that come with sparq-sim."""
