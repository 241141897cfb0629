"""What the metrics cost on a million predictions, next to torchmetrics' calibration error."""

import sys
from importlib import import_module
from pathlib import Path

import torch
from core import Measurement, fastest

from credalearn import metrics


def metric_cost() -> list[Measurement]:
    """ECE and AUARC of a million predictions of ten classes, in units of torchmetrics' ECE."""
    sys.path.append(str(Path(__file__).parents[1] / "tests"))
    import_module("torchvision_shim")  # torchmetrics imports torchvision where it is installed
    from torchmetrics.functional.classification import multiclass_calibration_error

    generator = torch.Generator().manual_seed(0)
    probs = (2 * torch.randn(1_000_000, 10, generator=generator)).softmax(1)
    y = probs.multinomial(1, generator=generator)[:, 0]  # right as often as stated
    score = 1 - probs.amax(1)
    theirs, ece, auarc = fastest(
        lambda: multiclass_calibration_error(probs, y, num_classes=10, n_bins=10),
        lambda: metrics.ece(probs, y),
        lambda: metrics.auarc(probs, y, score),
        repeats=15,
    )
    name = "torchmetrics' ECE, N=1,000,000 K=10"
    return [
        Measurement(f"ece / {name}", ece / theirs, "×", 3.0),
        Measurement(f"auarc / {name}", auarc / theirs, "×", 3.0),
    ]


METRICS_COST = (metric_cost,)
