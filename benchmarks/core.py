"""What the core costs: each measurement next to its limit.

Times are the fastest of several repetitions, ratios are of runs in turn: other work on the machine
can only slow a run down.
"""

import math
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

import credalearn as cl
from credalearn.sets.box_entropy import _searched


@dataclass(frozen=True, slots=True)
class Measurement:
    """One line of the table; without a limit it is for information."""

    name: str
    value: float
    unit: str
    limit: float | None = None

    @property
    def holds(self) -> bool:
        """Whether the value is within its limit."""
        return self.limit is None or self.value <= self.limit


def fastest(*functions: Callable[[], object], repeats: int) -> list[float]:
    """Seconds of the fastest run of each, all run in turn."""
    times = [[float("inf")] for _ in functions]
    for _ in range(repeats):
        for function, found in zip(functions, times, strict=True):
            started = time.perf_counter()
            function()
            found.append(time.perf_counter() - started)
    return [min(found) for found in times]


def loss_cost() -> list[Measurement]:
    """POCC's loss, forward and backward, against two soft cross-entropies of torch."""
    threads, found = torch.get_num_threads(), []
    for count in (1, 2):
        torch.set_num_threads(count)
        for num_classes in (2, 10, 100):
            for num_items in (128, 10_000):
                found += _loss_cost(num_items, num_classes, count)
    torch.set_num_threads(threads)
    return found


def _loss_cost(num_items: int, num_classes: int, threads: int) -> list[Measurement]:
    generator = torch.Generator().manual_seed(0)
    shape = (num_items, num_classes)
    soft = (3 * torch.randn(shape, generator=generator)).softmax(1)
    heads = [torch.randn(shape, generator=generator, requires_grad=True) for _ in range(2)]
    points = torch.rand(num_items, 5, num_classes, generator=generator).softmax(2)
    # NumPy sorts on one thread: with two, a million costs take 5.3 to 5.9 × on a quiet machine.
    limit = 7.0 if threads > 1 and num_items * num_classes > 500_000 else 5.0
    width = 0.5 / num_classes
    low, high = (soft - width).clamp(min=0), (soft + width).clamp(max=1)
    three = [each[:, None].expand(-1, 3, -1) for each in (low, high)]
    labels: dict[str, tuple[cl.CredalSet, float | None]] = {
        "relaxed": (cl.relax(soft), 2.5),
        "intervals": (cl.Intervals(low, high), limit),
        "balls": (cl.TotalVariationBall(soft, 0.1), limit),
        "possibility": (cl.Possibility(soft / soft.amax(1, keepdim=True)), limit),
        "intervals of three people": (cl.MeanIntervals(*three), None),
        "five vertices": (cl.Vertices(points), None),
    }

    def plain() -> None:
        loss = cross_entropy(heads[0], soft) + cross_entropy(heads[1], soft)
        torch.autograd.grad(loss, heads)

    def pocc(sets: cl.CredalSet) -> None:
        torch.autograd.grad(cl.pocc_loss(heads[0], heads[1], sets), heads)

    runs = [partial(pocc, sets) for sets, _ in labels.values()]
    base, *costs = fastest(plain, *runs, repeats=40 if num_items > 1000 else 400)
    name = f"pocc_loss / 2 cross-entropies, {threads} threads, N={num_items} K={num_classes}"
    return [
        Measurement(f"{name}, {kind}", cost / base, "×", limit)
        for (kind, (_, limit)), cost in zip(labels.items(), costs, strict=True)
    ]


def two_head_boxes(num_items: int, num_classes: int, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Boxes around two random predictions."""
    generator = torch.Generator().manual_seed(0)
    logits = 2 * torch.randn(num_items, 2, num_classes, generator=generator, dtype=dtype)
    heads = logits.softmax(2)
    return heads.amin(1), heads.amax(1)


def entropy_cost() -> list[Measurement]:
    """Entropy bounds of 10,000 boxes of 100 classes."""
    found = []
    for dtype in (torch.float32, torch.float64):
        lower, upper = two_head_boxes(10_000, 100, dtype)
        for function, limit in ((cl.max_entropy_box, 60.0), (cl.min_entropy_box, 1000.0)):

            def run(entropy: Callable[[Tensor, Tensor], Tensor] = function) -> None:
                entropy(lower, upper)  # noqa: B023

            (seconds,) = fastest(run, repeats=8)
            name = f"{function.__name__}, 10,000 boxes, K=100, {str(dtype)[6:]}"
            found.append(Measurement(name, 1000 * seconds, "ms", limit))
    return found


def entropy_memory() -> list[Measurement]:
    """Peak memory of the bounds on 100,000 boxes, in a process of its own."""
    code = """
import re
from pathlib import Path
import torch
import credalearn as cl
# Not ru_maxrss, which a process inherits from the one that started it.
status = Path("/proc/self/status")
peak = lambda: 1024 * int(re.search(r"VmHWM:\\s+(\\d+)", status.read_text())[1])
lower, upper = (torch.full((100_000, 100), each, dtype=torch.float64) for each in (0.005, 0.02))
cl.{name}(lower[:10], upper[:10])
before = peak()
cl.{name}(lower, upper)
print((peak() - before) / (8 * lower.numel()))
"""
    found = []
    for name in ("max_entropy_box", "min_entropy_box"):
        command = [sys.executable, "-c", code.format(name=name)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        text = f"{name}, peak memory / N·K numbers"
        found.append(Measurement(text, float(done.stdout), "×", 15.0))
    return found


def entropy_misses() -> list[Measurement]:
    """How often pouring in the order of the index misses the minimum; ours is enumerated."""
    lower, upper = two_head_boxes(2000, 8, torch.float64)
    width = upper - lower
    free = 1 - lower.sum(1, keepdim=True)
    poured = (free - (width.cumsum(1) - width)).clamp(min=0).minimum(width)
    missed = cl.entropy(lower + poured) > cl.min_entropy_box(lower, upper) + 1e-9
    lines = [("index-order greedy misses the minimum, K=8", 100 * missed.double().mean(), "%")]
    # What the search that serves more than ten classes misses, where enumeration still tells.
    lower, upper = two_head_boxes(2000, 10, torch.float64)
    exact = cl.min_entropy_box(lower, upper)
    box = cl.Intervals(lower, upper)
    greedy = [cl.entropy(box.worst_target(key)) for key in (lower, upper, lower + upper)]
    found = {
        "the three orders": torch.stack(greedy).amin(0),
        "with exchanges": _searched(lower, upper) / math.log(2),
    }
    for name, values in found.items():
        gap = values - exact
        lines.append((f"{name}, K=10, missed", 100 * (gap > 1e-9).double().mean(), "% of boxes"))
        lines.append((f"{name}, K=10, by at most", gap.max(), "bits"))
    return [Measurement(name, float(value), unit) for name, value, unit in lines]


def start_up_cost() -> list[Measurement]:
    """What importing the package adds to torch, and how fast the commands answer."""

    def python(*arguments: str) -> Callable[[], object]:
        return lambda: subprocess.run([sys.executable, *arguments], capture_output=True, check=True)

    with TemporaryDirectory() as folder:
        votes, features, run = (Path(folder, name) for name in ("votes.csv", "items.csv", "run"))
        values = torch.randn(200, generator=torch.Generator().manual_seed(0)).tolist()
        said = [f"{item},{who},{x > 0}" for item, x in enumerate(values) for who in ("ann", "bo")]
        votes.write_text("\n".join(["item,annotator,label", *said]))
        features.write_text("\n".join(["item,x", *(f"{n},{x}" for n, x in enumerate(values))]))
        cl.Run.train(cl.Dataset(cl.read_annotations(votes), features=features), run)
        torch_alone, with_package, classifier, help_text, inspected, certified = fastest(
            python("-c", "import torch"),
            python("-c", "import torch, credalearn"),
            python("-c", "import torch, credalearn; credalearn.CredalClassifier"),
            python("-m", "credalearn", "--help"),
            python("-m", "credalearn", "inspect", str(votes)),
            python("-m", "credalearn", "certify", str(run), "--max-error", "0.3"),
            repeats=3,
        )
    return [
        Measurement("import credalearn, beyond import torch", with_package - torch_alone, "s", 0.3),
        Measurement("… and its classifier (scikit-learn)", classifier - torch_alone, "s"),
        Measurement("credalearn --help", help_text, "s", 0.5),
        Measurement("credalearn inspect, 400 votes", inspected, "s", 1.0),
        Measurement("credalearn certify, 200 items", certified, "s", 2.0),
    ]


CORE_COST = (loss_cost, entropy_cost, entropy_memory, entropy_misses, start_up_cost)
