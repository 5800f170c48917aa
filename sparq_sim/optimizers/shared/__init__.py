"""What several optimizers are made of."""
