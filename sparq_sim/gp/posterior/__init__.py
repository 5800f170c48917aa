"""Posteriors: what is believed of a reward given observations, exactly, at the least cost."""
