"""The training loop, its recipe, checkpoints and progress."""

from credalearn.train.augment import Augment, crop_and_flip
from credalearn.train.checkpoint import CheckpointError
from credalearn.train.learner import Training, check_checkpoint
from credalearn.train.loop import Loss, seeded, train
from credalearn.train.progress import Listener, Progress
from credalearn.train.recipe import Recipe
from credalearn.train.together import train_together

__all__ = [
    "Augment",
    "CheckpointError",
    "Listener",
    "Loss",
    "Progress",
    "Recipe",
    "Training",
    "check_checkpoint",
    "crop_and_flip",
    "seeded",
    "train",
    "train_together",
]
