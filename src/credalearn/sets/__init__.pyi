"""Sets on the probability simplex, their extremes, imprecision and entropy. Tensors only."""

from credalearn.sets.base import CredalSet as CredalSet
from credalearn.sets.base import concatenate as concatenate
from credalearn.sets.box_entropy import max_entropy_box as max_entropy_box
from credalearn.sets.box_entropy import min_entropy_box as min_entropy_box
from credalearn.sets.diameter import mmi as mmi
from credalearn.sets.hull_entropy import entropy as entropy
from credalearn.sets.hull_entropy import max_entropy_hull as max_entropy_hull
from credalearn.sets.hull_entropy import min_entropy_hull as min_entropy_hull
from credalearn.sets.intervals import Intervals as Intervals
from credalearn.sets.lower_bounds import LowerBounds as LowerBounds
from credalearn.sets.mean_intervals import MeanIntervals as MeanIntervals
from credalearn.sets.possibility import Possibility as Possibility
from credalearn.sets.total_variation import TotalVariationBall as TotalVariationBall
from credalearn.sets.vertices import Vertices as Vertices
