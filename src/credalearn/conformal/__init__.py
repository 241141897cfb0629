"""Predicted sets widened until they hold what people say of new items. Tensors only."""

from credalearn.conformal.calibrating import calibrate
from credalearn.conformal.distance import box_distance, total_variation
from credalearn.conformal.inflation import Distance, Inflation
from credalearn.conformal.scales import SCALES, Scale

__all__ = [
    "SCALES",
    "Distance",
    "Inflation",
    "Scale",
    "box_distance",
    "calibrate",
    "total_variation",
]
