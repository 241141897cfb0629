"""Training labels of a run: from annotators, some of their votes, smoothing or a teacher.

Shapes: N items, K classes.
"""

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import one_hot

from credalearn.errors import CredalError
from credalearn.labels import collapse, from_teacher, from_votes, precise, relax, smooth
from credalearn.sets import CredalSet
from credalearn_experiments.data import DataFolders, Task
from credalearn_experiments.data.teachers import Dataset, teacher_logits
from credalearn_experiments.settings import Annotators, Setting, Smoothing, Votes


def training_labels(
    setting: Setting, task: Task, data: DataFolders, device: torch.device, *, random_state: int
) -> CredalSet:
    """Credal labels of the training items, on the CPU; the seed draws votes, if only a few."""
    source = setting.labels
    needed = {Annotators: "train_soft", Votes: "train_counts"}.get(type(source), "train_y")
    given = getattr(task, needed)
    if given is None:
        raise CredalError(
            f"the labels of setting {setting.name!r}, {type(source).__name__}, need {needed}; "
            f"task {task.name!r} has none. To fix: pass {needed} to its Task, or use other labels."
        )
    labels: CredalSet
    if isinstance(source, Annotators):
        labels = relax(given)
    elif isinstance(source, Votes):
        votes = draw_votes(given, source.number, random_state=random_state)
        labels = from_votes(votes.double(), rule=source.rule)
    elif isinstance(source, Smoothing):
        labels = smooth(given, source.epsilon, task.num_classes)
    else:
        dataset: Dataset = "cifar100" if task.name == "cifar100" else "cifar10"
        logits = teacher_logits(
            source.name, task.train_inputs, data, dataset=dataset, device=device
        )
        labels = from_teacher(logits, temperature=source.temperature)
    if setting.centered:
        labels = precise(labels.center())
    return collapse(labels) if setting.collapsed else labels


def draw_votes(counts: Tensor, number: int | None, *, random_state: int) -> Tensor:
    """So many of each item's votes, drawn without replacement; fewer are a subset of more."""
    if number is None:
        return counts
    totals = counts.sum(1)
    if number > totals.min():
        row = int(totals.argmin())
        raise CredalError(
            f"{number} votes per item cannot be drawn; item {row} has {int(totals[row])}. "
            "To fix: draw fewer votes, or use all."
        )
    # One column per vote, in the order of the classes; beyond the item's own votes the class is K.
    places = torch.arange(int(totals.max())).expand(len(counts), -1).contiguous()
    classes = torch.searchsorted(counts.cumsum(1), places, right=True)
    keys = torch.from_numpy(np.random.default_rng(random_state).random(tuple(places.shape)))
    keys[classes == counts.shape[1]] = torch.inf
    drawn = classes.gather(1, keys.argsort(1)[:, :number])
    return one_hot(drawn, counts.shape[1]).sum(1)
