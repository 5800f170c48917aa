"""Analysis: what the plays of a study come to."""
