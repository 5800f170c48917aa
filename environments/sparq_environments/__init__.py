"""Environments that come with sparq-sim: one module for each kind, named as the kind."""
