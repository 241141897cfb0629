"""The training loop, its recipe, checkpoints and progress."""

from credalearn.train._random import seeded
from credalearn.train.augment import AUGMENTS, Augment, Mix, crop_and_flip
from credalearn.train.checkpoint import CheckpointError, check_checkpoint
from credalearn.train.loop import train
from credalearn.train.progress import Listener, Progress
from credalearn.train.recipe import Recipe
from credalearn.train.training import Loss, Training

__all__ = [
    "AUGMENTS",
    "Augment",
    "CheckpointError",
    "Listener",
    "Loss",
    "Mix",
    "Progress",
    "Recipe",
    "Training",
    "check_checkpoint",
    "crop_and_flip",
    "seeded",
    "train",
]
