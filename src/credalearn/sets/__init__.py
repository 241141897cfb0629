"""Sets on the probability simplex, their extremes, imprecision and entropy. Tensors only."""

from credalearn.sets.base import CredalSet
from credalearn.sets.box_entropy import max_entropy_box, min_entropy_box
from credalearn.sets.concatenate import concatenate
from credalearn.sets.diameter import mmi
from credalearn.sets.hull_entropy import entropy, max_entropy_hull, min_entropy_hull
from credalearn.sets.intervals import Intervals
from credalearn.sets.lower_bounds import LowerBounds
from credalearn.sets.mean_intervals import MeanIntervals
from credalearn.sets.possibility import Possibility
from credalearn.sets.total_variation import TotalVariationBall
from credalearn.sets.vertices import Vertices

__all__ = [
    "CredalSet",
    "Intervals",
    "LowerBounds",
    "MeanIntervals",
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
