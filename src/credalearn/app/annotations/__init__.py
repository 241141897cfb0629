"""Annotations of items by people: the noun, agreement, annotators, and the merging of rounds."""

from importlib import import_module
from typing import Any

_MOVED = {
    "Annotations": "annotations.table",
    "Source": "annotations.table",
    "read_annotations": "readers",
    "READERS": "readers",
    "agreement": "annotations.agreement",
    "krippendorff_alpha": "annotations.agreement",
    "vote_counts": "annotations.agreement",
    "annotator_agreement": "annotations.annotators",
    "typo_classes": "annotations.typos",
}


def __getattr__(name: str) -> Any:
    if name not in _MOVED:
        raise AttributeError(name)
    return getattr(import_module(f"credalearn.app.{_MOVED[name]}"), name)
