"""``credalearn export``: a trained model as ONNX, for any runtime that reads it.

Shapes: N items, V heads, K classes, D features, S pixels.
"""

import json
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch

from credalearn import __version__
from credalearn._files import check_file, whole_file
from credalearn.app.outputs import refuse_overwriting_run
from credalearn.app.run import Run
from credalearn.app.steps.graphs import Graph
from credalearn.errors import CredalError
from credalearn.nets import Standardize

# By name: shape, and what it holds.
OUTPUTS = {
    "heads": ("(N, V, K)", "distributions of all heads of all members"),
    "probabilities": ("(N, K)", "their midpoint"),
    "lower": ("(N, K)", "lower probabilities"),
    "upper": ("(N, K)", "upper probabilities"),
    "label": ("(N,)", "predicted class, an index into the classes, from 0"),
    "score": ("(N,)", "1 − lower probability of that class"),
}
TOLERANCE = 1e-5
_PACKAGES = ("onnx", "onnxscript", "onnxruntime")
_CHECKED = 64  # random items on which the export is compared with torch


def export_onnx(run: Run, path: str | Path) -> None:
    """Write the run's model as one ONNX file, and check it under onnxruntime.

    The input is ``features``, float64 (N, D), raw: standardizing is part of the model, in float64
    as in training; or ``images``, float32 (N, 3, S, S) with values from 0 to 255. Any number of
    items goes at once. The outputs are :data:`OUTPUTS`.

    The metadata name the classes, the features, the method and the rule's threshold.

    Raises:
        CredalError: If the method cannot be exported, a package is missing, the file is one that
            the run was trained on, or the ONNX model says anything else than torch, by more than
            1e-5.
    """
    path = check_onnx(path)
    refuse_overwriting_run(path, run)
    missing = [name for name in _PACKAGES if find_spec(name) is None]
    if missing:
        raise CredalError(
            f"exporting needs {', '.join(missing)}, not installed. To fix: "
            "pip install 'credalearn[onnx]'."
        )
    clf = run.load_model()
    graph = Graph(str(clf.method), clf.model_).cpu()
    name, sample = _sample(run, clf._input_shape)
    program = _exported(graph, name, sample)
    program.model.metadata_props.update(_metadata(run))
    program.model.producer_name, program.model.producer_version = "credalearn", __version__
    with whole_file(path) as partial:
        program.save(str(partial), external_data=False)
        _check_same(partial, graph, name, sample)


def check_onnx(path: str | Path) -> Path:
    """The path, if its suffix is that of ONNX and it can be written.

    Raises:
        CredalError: If it is not, or cannot.

    Example:
        >>> check_onnx("model.onnx").name
        'model.onnx'
    """
    return check_file(path, (".onnx",))


def _sample(run: Run, shape: tuple[int, ...]) -> tuple[str, torch.Tensor]:
    """The name of the input, and items drawn around those of training."""
    generator = torch.Generator().manual_seed(0)
    if run.takes_images:
        return "images", 255 * torch.rand(4, *shape, generator=generator)
    noise = torch.randn(_CHECKED, *shape, generator=generator, dtype=torch.float64)
    return "features", noise


def _exported(graph: Graph, name: str, sample: torch.Tensor) -> Any:
    with _quiet():
        try:
            return torch.onnx.export(
                graph,
                (sample[:2],),
                input_names=[name],
                output_names=list(OUTPUTS),
                dynamic_shapes=({0: torch.export.Dim("items")},),
                dynamo=True,
                verbose=False,
            )
        except Exception as error:  # torch's exporter has no error of its own for everything
            first = str(error).strip().splitlines()[0] if str(error).strip() else type(error)
            raise CredalError(
                f"torch cannot turn this network into ONNX: {first}. To fix: train with another "
                "backbone, such as mlp or resnet18."
            ) from error


def _metadata(run: Run) -> dict[str, str]:
    facts, rule = run.facts, run.guarantee
    kept = {
        "classes": list(run.classes),
        "features": facts.inputs.features,
        "method": facts.method,
        "credalearn": __version__,
        "threshold": None if rule is None else rule.threshold,
        "rule": None if rule is None else rule.sentence(),
    }
    return {name: json.dumps(value, ensure_ascii=False) for name, value in kept.items()}


def _check_same(path: Path, graph: Graph, name: str, sample: torch.Tensor) -> None:
    """Refuse a file that says anything else than torch; but labels of classes as probable."""
    onnxruntime: Any = import_module("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(path.read_bytes(), options)
    if name == "features":
        sample = _as_in_training(graph, sample)
    with torch.no_grad():
        wanted = [each.numpy() for each in graph(sample)]
    found = session.run(list(OUTPUTS), {name: sample.numpy()})
    pairs = dict(zip(OUTPUTS, zip(wanted, found, strict=True), strict=True))
    alike = np.ones(len(sample), dtype=bool)
    if len(sample):
        top = np.sort(wanted[1], axis=1)
        alike = top[:, -1] - top[:, -2] > 2 * TOLERANCE
    for output, (ours, theirs) in pairs.items():
        rows = alike if output in ("label", "score") else slice(None)
        gap = np.abs(ours[rows].astype(float) - theirs[rows].astype(float)).max(initial=0)
        if not gap <= TOLERANCE:
            raise CredalError(
                f"the ONNX model gives another {output} than torch, by {gap:.2g}; nothing was "
                "written. To fix: report this with the versions of torch, onnx and onnxruntime."
            )


def _as_in_training(graph: Graph, noise: torch.Tensor) -> torch.Tensor:
    """Noise at the place and of the spread of the training data, where the model knows them."""
    for layer in graph.modules():
        if isinstance(layer, Standardize):
            return layer.mean + 3 * layer.scale * noise
    return noise


@contextmanager
def _quiet() -> Iterator[None]:
    """Without what torch's exporter tells its own developers."""
    loggers = [logging.getLogger(name) for name in ("torch.onnx", "onnxscript", "onnx_ir")]
    levels = [logger.level for logger in loggers]
    try:
        for logger in loggers:
            logger.setLevel(logging.ERROR)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
