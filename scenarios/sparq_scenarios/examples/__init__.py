"""Example scripts: run them with `python -m sparq_scenarios.examples.NAME`."""
