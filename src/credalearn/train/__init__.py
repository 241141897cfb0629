"""The training loop, its recipe, checkpoints and progress."""

from credalearn.train.loop import Loss, seeded, train
from credalearn.train.progress import Progress
from credalearn.train.recipe import Recipe

__all__ = ["Loss", "Progress", "Recipe", "seeded", "train"]
