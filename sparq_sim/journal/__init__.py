"""The journal of a play: every question, move and answer, a line each, as it happens."""
