"""Annotations and inputs brought together: rounds, labels, splits, and how to train on them."""
