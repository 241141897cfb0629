"""The public names, listed once: ``__init__.py`` reads this file to import each on first use."""

from credalearn import methods as methods
from credalearn import metrics as metrics
from credalearn import theory as theory
from credalearn._load import load as load
from credalearn.app.dataset import Dataset as Dataset
from credalearn.app.readers import read_annotations as read_annotations
from credalearn.app.run import Run as Run
from credalearn.classifier import CredalClassifier as CredalClassifier
from credalearn.conformal import Inflation as Inflation
from credalearn.errors import CredalError as CredalError
from credalearn.errors import PrecisionWarning as PrecisionWarning
from credalearn.errors import TrainingError as TrainingError
from credalearn.guarantees import Guarantee as Guarantee
from credalearn.guarantees import Promise as Promise
from credalearn.guarantees import ScoredItems as ScoredItems
from credalearn.guarantees import certify as certify
from credalearn.labels import at_least as at_least
from credalearn.labels import collapse as collapse
from credalearn.labels import contaminate as contaminate
from credalearn.labels import from_posterior as from_posterior
from credalearn.labels import from_statements as from_statements
from credalearn.labels import from_teacher as from_teacher
from credalearn.labels import from_votes as from_votes
from credalearn.labels import hull as hull
from credalearn.labels import precise as precise
from credalearn.labels import relax as relax
from credalearn.labels import smooth as smooth
from credalearn.labels import statement_conflicts as statement_conflicts
from credalearn.methods import pocc_loss as pocc_loss
from credalearn.predictions import CredalPredictions as CredalPredictions
from credalearn.sets import CredalSet as CredalSet
from credalearn.sets import Intervals as Intervals
from credalearn.sets import LowerBounds as LowerBounds
from credalearn.sets import MeanIntervals as MeanIntervals
from credalearn.sets import Possibility as Possibility
from credalearn.sets import TotalVariationBall as TotalVariationBall
from credalearn.sets import Vertices as Vertices
from credalearn.sets import concatenate as concatenate
from credalearn.sets import entropy as entropy
from credalearn.sets import max_entropy_box as max_entropy_box
from credalearn.sets import max_entropy_hull as max_entropy_hull
from credalearn.sets import min_entropy_box as min_entropy_box
from credalearn.sets import min_entropy_hull as min_entropy_hull
from credalearn.sets import mmi as mmi

__version__: str
