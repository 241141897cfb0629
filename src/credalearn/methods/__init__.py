"""The methods, one file each, under the names that users give."""

from credalearn.methods.base import Method
from credalearn.methods.pocc import Pocc, pocc_loss
from credalearn.methods.softmax import Softmax

METHODS: dict[str, Method] = {"pocc": Pocc(), "softmax": Softmax()}

__all__ = ["METHODS", "Method", "Pocc", "Softmax", "pocc_loss"]
