"""Live play: an optimizer steers real things, by real time."""
