"""Posteriors: what is believed of a reward, by the exact way that costs least."""
