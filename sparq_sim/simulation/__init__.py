"""The simulation of one play: time, channels, delivery, the engine, and what it leaves behind."""
