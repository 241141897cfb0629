"""Doing runs: planned, claimed, trained, measured and stored, here or by other processes."""
