"""Learn classifiers from annotators who disagree, and know when to ask a human.

Public names are found on first use: ``import credalearn`` alone imports neither torch nor
scikit-learn, so that the command answers at once.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the same names as in the table below, for type checkers and editors
    from credalearn import bench as bench
    from credalearn import methods as methods
    from credalearn import metrics as metrics
    from credalearn import theory as theory
    from credalearn.conformal import Inflation as Inflation
    from credalearn.credal import CredalSet as CredalSet
    from credalearn.credal import Intervals as Intervals
    from credalearn.credal import LowerBounds as LowerBounds
    from credalearn.credal import Possibility as Possibility
    from credalearn.credal import TotalVariationBall as TotalVariationBall
    from credalearn.credal import Vertices as Vertices
    from credalearn.credal import concatenate as concatenate
    from credalearn.credal import entropy as entropy
    from credalearn.credal import max_entropy_box as max_entropy_box
    from credalearn.credal import max_entropy_hull as max_entropy_hull
    from credalearn.credal import min_entropy_box as min_entropy_box
    from credalearn.credal import min_entropy_hull as min_entropy_hull
    from credalearn.credal import mmi as mmi
    from credalearn.decide import DecisionRule as DecisionRule
    from credalearn.decide import certify as certify
    from credalearn.errors import CredalError as CredalError
    from credalearn.errors import PrecisionWarning as PrecisionWarning
    from credalearn.errors import TrainingError as TrainingError
    from credalearn.estimator import CredalClassifier as CredalClassifier
    from credalearn.estimator import load as load
    from credalearn.labels import at_least as at_least
    from credalearn.labels import collapse as collapse
    from credalearn.labels import contaminate as contaminate
    from credalearn.labels import from_posterior as from_posterior
    from credalearn.labels import from_teacher as from_teacher
    from credalearn.labels import from_votes as from_votes
    from credalearn.labels import hull as hull
    from credalearn.labels import precise as precise
    from credalearn.labels import relax as relax
    from credalearn.labels import smooth as smooth
    from credalearn.methods import pocc_loss as pocc_loss
    from credalearn.predictions import CredalPredictions as CredalPredictions

__version__ = "0.1.0"

_PUBLIC = {  # module: the names it gives to the package, in the order of the way of the data
    "errors": ["CredalError", "TrainingError", "PrecisionWarning"],
    "credal": [
        *["CredalSet", "LowerBounds", "Intervals", "Vertices"],
        *["TotalVariationBall", "Possibility", "concatenate"],
        *["entropy", "max_entropy_box", "min_entropy_box", "max_entropy_hull", "min_entropy_hull"],
        "mmi",
    ],
    "labels": [
        *["relax", "precise", "from_votes", "from_posterior", "from_teacher", "smooth"],
        *["at_least", "contaminate", "hull", "collapse"],
    ],
    "conformal": ["Inflation"],
    "predictions": ["CredalPredictions"],
    "methods": ["pocc_loss"],
    "decide": ["certify", "DecisionRule"],
    "estimator": ["CredalClassifier", "load"],
}
_MODULES = ["methods", "metrics", "theory", "bench"]
_HOME = {name: module for module, names in _PUBLIC.items() for name in names}

__all__ = [*_HOME, *_MODULES]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(import_module(f"credalearn.{_HOME[name]}"), name)
    elif name in _MODULES:
        value = import_module(f"credalearn.{name}")
    else:
        raise AttributeError(f"module 'credalearn' has no attribute {name!r}")
    globals()[name] = value  # next time without this function
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
