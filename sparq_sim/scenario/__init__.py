"""Scenarios: all that fixes plays but chance, read from TOML files or made in Python."""
