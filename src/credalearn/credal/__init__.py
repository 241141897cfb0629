"""Sets on the probability simplex, their extremes, imprecision and entropy. Tensors only."""

from credalearn.credal.base import CredalSet
from credalearn.credal.box_max_entropy import max_entropy_box
from credalearn.credal.box_min_entropy import min_entropy_box
from credalearn.credal.concatenate import concatenate
from credalearn.credal.hull_entropy import entropy, max_entropy_hull, min_entropy_hull
from credalearn.credal.imprecision import mmi
from credalearn.credal.intervals import Intervals
from credalearn.credal.lower_bounds import LowerBounds
from credalearn.credal.possibility import Possibility
from credalearn.credal.total_variation import TotalVariationBall
from credalearn.credal.vertices import Vertices

__all__ = [
    "CredalSet",
    "Intervals",
    "LowerBounds",
    "Possibility",
    "TotalVariationBall",
    "Vertices",
    "concatenate",
    "entropy",
    "max_entropy_box",
    "max_entropy_hull",
    "min_entropy_box",
    "min_entropy_hull",
    "mmi",
]
