"""Calibrate: fit a channel to what was heard, so that a simulation starts from what was measured.

`calibrate` in `channels` does it for each source of a play; `write_toml` in `toml` prints it.
"""
