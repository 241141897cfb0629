"""The training loop, its recipe, checkpoints and progress."""

from credalearn.train._random import seeded as seeded
from credalearn.train.augment import AUGMENTS as AUGMENTS
from credalearn.train.augment import Augment as Augment
from credalearn.train.augment import Mix as Mix
from credalearn.train.augment import crop_and_flip as crop_and_flip
from credalearn.train.checkpoint import CheckpointError as CheckpointError
from credalearn.train.checkpoint import check_checkpoint as check_checkpoint
from credalearn.train.loop import train as train
from credalearn.train.progress import Listener as Listener
from credalearn.train.progress import Progress as Progress
from credalearn.train.training import Loss as Loss
from credalearn.train.training import Recipe as Recipe
from credalearn.train.training import Training as Training
