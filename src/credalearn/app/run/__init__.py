"""A run on disk: its folder, what is staged beside it, and what its commands leave alone."""
