"""Plug-ins: what environments, experts and optimizers are, and how they are found and checked."""
