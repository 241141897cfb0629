"""Exports of annotation tools into one checked table, and what people disagree about in it."""

from credalearn.app.annotations.agreement import (
    Agreement,
    agreement,
    krippendorff_alpha,
    vote_counts,
)
from credalearn.app.annotations.confusions import Confusion, Typo, confused_pairs, typo_classes
from credalearn.app.annotations.dawid_skene import dawid_skene
from credalearn.app.annotations.people import Annotator, annotator_agreement
from credalearn.app.annotations.reading import read_annotations
from credalearn.app.annotations.table import Annotations, Source
from credalearn.app.readers import READERS

__all__ = [
    "READERS",
    "Agreement",
    "Annotations",
    "Annotator",
    "Confusion",
    "Source",
    "Typo",
    "agreement",
    "annotator_agreement",
    "confused_pairs",
    "dawid_skene",
    "krippendorff_alpha",
    "read_annotations",
    "typo_classes",
    "vote_counts",
]
