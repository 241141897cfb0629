"""The methods under the names that users give."""

from credalearn.methods.base import Method, Outputs, State
from credalearn.methods.decalibration import DECALIBRATION
from credalearn.methods.distillation import CREDAL_BOUNDS, POCC_DISTILLED
from credalearn.methods.edl import DAPPR, EDL, EDL_SOFT
from credalearn.methods.laplace_bridge import LAPLACE_BRIDGE
from credalearn.methods.model import Model
from credalearn.methods.pocc import POCC, POCC_CENTER, POCC_ENSEMBLE, POCC_MEAN, pocc_loss
from credalearn.methods.softmax import DEEP_ENSEMBLE, MC_DROPOUT, SOFTMAX

METHODS: dict[str, Method] = {
    "pocc": POCC,
    "pocc-mean": POCC_MEAN,
    "pocc-center": POCC_CENTER,
    "pocc-ensemble": POCC_ENSEMBLE,
    "softmax": SOFTMAX,
    "edl": EDL,
    "edl-soft": EDL_SOFT,
    "dappr": DAPPR,
    "mc-dropout": MC_DROPOUT,
    "deep-ensemble": DEEP_ENSEMBLE,
    "laplace-bridge": LAPLACE_BRIDGE,
    "decalibration": DECALIBRATION,
    "credal-bounds": CREDAL_BOUNDS,
    "pocc-distilled": POCC_DISTILLED,
}

__all__ = ["METHODS", "Method", "Model", "Outputs", "State", "pocc_loss"]
