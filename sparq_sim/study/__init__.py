"""Studies: the plays of a scenario, where they are computed, and the folder that keeps them."""
