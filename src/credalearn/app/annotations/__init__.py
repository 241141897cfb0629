"""Annotations of items by people: the noun, agreement, annotators, and the merging of rounds."""
