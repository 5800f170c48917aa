"""A page on loopback that shows a running study or a live play, and keeps itself up to date."""
