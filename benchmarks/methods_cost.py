"""What the post-hoc methods cost: the Laplace bridge next to laplace-torch, and decalibration."""

import subprocess
import sys
from pathlib import Path

import torch
from core import Measurement, fastest
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from credalearn.methods.base import Outputs
from credalearn.methods.laplace_bridge import fit_curvature, predictions

# One thread: next to other work, waiting for a second thread costs more than it gains.
_MEASURED = """
import re
import time
from pathlib import Path
import torch
from credalearn.methods.base import Outputs
torch.set_num_threads(1)
generator = torch.Generator().manual_seed(0)
{prepare}
seconds = []
for _ in range(3):
    started = time.perf_counter()
    {run}
    seconds.append(time.perf_counter() - started)
# Not ru_maxrss, which a process inherits from the one that started it.
kilobytes = re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]
print(min(seconds), 1024 * int(kilobytes) / 1e9)
"""


def bridge_cost() -> list[Measurement]:
    """Prediction by the Laplace bridge against laplace-torch, from features to probabilities.

    laplace-torch gets batches of 500 items, as all Jacobians at once are 2 GB.
    """
    sys.path.append(str(Path(__file__).parents[1] / "tests"))  # where its shim is
    from laplace_shim import Laplace

    generator = torch.Generator().manual_seed(0)
    features = torch.randn(10_000, 512, generator=generator).clamp(min=0)
    head = nn.Linear(512, 10)
    y = head(features).argmax(1)
    theirs = Laplace(
        nn.Sequential(nn.Identity(), head),
        "classification",
        subset_of_weights="last_layer",
        hessian_structure="kron",
    )
    theirs.fit(DataLoader(TensorDataset(features, y), batch_size=500))

    @torch.no_grad()
    def outputs(items: Tensor) -> Outputs:
        return Outputs(head(items)[:, None, None], items)

    state = fit_curvature(outputs(features), None)  # type: ignore[arg-type]

    means: list[Tensor] = []

    def their_mean() -> None:
        found = []
        for batch in torch.split(features, 500):
            mean = theirs(batch, pred_type="glm", link_approx="bridge")
            assert isinstance(mean, Tensor)
            found.append(mean)
        means.append(torch.cat(found))

    def our_mean() -> Tensor:
        return predictions(outputs(features), state).probs

    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # for both; see above
    (theirs_seconds,) = fastest(their_mean, repeats=1)  # long enough to ignore noise
    (ours_seconds,) = fastest(our_mean, repeats=10)
    torch.set_num_threads(threads)
    difference = (our_mean() - means[0]).abs().max()
    name = "Laplace bridge, N=10,000 K=10 D=512"
    return [
        Measurement(f"{name}, time / laplace-torch's", ours_seconds / theirs_seconds, "×", 1 / 50),
        Measurement(f"{name}, ours", 1000 * ours_seconds, "ms"),
        Measurement(f"{name}, largest difference", float(difference), "", 1e-3),
    ]


def bridge_of_many_classes() -> list[Measurement]:
    """Curvature and prediction of 10,000 items of 100 classes, in a process of its own."""
    return _measured(
        "Laplace bridge, N=10,000 K=100 D=512",
        prepare="""
from credalearn.methods.laplace_bridge import fit_curvature, predictions
logits = 3 * torch.randn(10_000, 1, 1, 100, generator=generator)
outputs = Outputs(logits, torch.randn(10_000, 512, generator=generator))
""",
        run="predictions(outputs, fit_curvature(outputs, None))",
        gigabytes=1.5,
    )


def decalibration_cost() -> list[Measurement]:
    """Roots and boxes of 50,000 items of 100 classes, in a process of its own."""
    return _measured(
        "decalibration, N=50,000 K=100",
        prepare="""
import credalearn as cl
from credalearn.methods.decalibration import fit_shifts, predictions
logits = 4 * torch.randn(50_000, 1, 1, 100, generator=generator)
noise = torch.randn(50_000, 100, generator=generator)
labels = cl.precise(torch.eye(100)[(logits[:, 0, 0] + noise).argmax(1)])
outputs = Outputs(logits, torch.zeros(50_000, 1))
""",
        run="predictions(outputs, fit_shifts(outputs, labels))",
        gigabytes=1.0,
    )


def _measured(name: str, *, prepare: str, run: str, gigabytes: float) -> list[Measurement]:
    """Seconds and peak memory of ``run``, with 3 s as the limit."""
    code = _MEASURED.format(prepare=prepare, run=run)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    seconds, peak = map(float, done.stdout.split())
    return [
        Measurement(f"{name}, fitted and predicted", seconds, "s", 3.0),
        Measurement(f"{name}, peak memory", peak, "GB", gigabytes),
    ]


METHODS_COST = (bridge_cost, bridge_of_many_classes, decalibration_cost)
