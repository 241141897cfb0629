"""Predicted sets widened until they contain what people say about new items; without torch."""

from credalearn.conformal.inflation import Distance as Distance
from credalearn.conformal.inflation import Inflation as Inflation
from credalearn.conformal.inflation import Scale as Scale
from credalearn.conformal.inflation import Stratum as Stratum
from credalearn.conformal.inflation import Target as Target
from credalearn.conformal.inflation import score_strata as score_strata
