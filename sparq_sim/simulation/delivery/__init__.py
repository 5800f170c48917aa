"""Delivery: what happens to a query on its way to a source and back."""
