"""The report of a study as one HTML file."""
