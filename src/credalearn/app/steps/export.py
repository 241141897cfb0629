"""``credalearn export``: a trained model as ONNX, with its model card.

Shapes: N items, V heads, K classes, D features, S pixels.
"""

import json
import logging
import warnings
from dataclasses import asdict, dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch

from credalearn import __version__
from credalearn._files import whole_file
from credalearn._options import Options, option
from credalearn._table_encoder import TableEncoder
from credalearn.app.facts import Printed
from credalearn.app.report.card import check_card, write_card
from credalearn.app.run import Run
from credalearn.app.staging import MODEL
from credalearn.app.steps.onnx_graph import Graph
from credalearn.app.table_writer import check_output
from credalearn.errors import CredalError
from credalearn.nets import Standardize

# By name: shape and content.
OUTPUTS = {
    "heads": ("(N, V, K)", "distributions of all heads of all members"),
    "probabilities": ("(N, K)", "center of the set"),
    "lower": ("(N, K)", "lower probabilities"),
    "upper": ("(N, K)", "upper probabilities"),
    "label": ("(N,)", "predicted class, an index into the classes, from 0"),
    "score": ("(N,)", "uncertainty; items above the threshold are deferred"),
}
TOLERANCE = 1e-5
_PACKAGES = ("onnx", "onnxscript", "onnxruntime")
_CHECKED = 64  # random items on which the export is compared with torch


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportOptions(Options):
    """Options of ``export``, in Python and on the command line."""

    onnx: Path = option(Path("model.onnx"), "ONNX file to write; its model card is next to it.")


@dataclass(frozen=True, slots=True, repr=False)
class Exported(Printed):
    """The files that ``export`` wrote."""

    onnx: Path
    cards: tuple[Path, ...]
    encoded: bool = False  # whether the model takes encoded texts

    @property
    def lines(self) -> tuple[str, ...]:
        """What the command prints."""
        after = " It starts after the encoder of the texts." if self.encoded else ""
        return (
            f"Wrote {self.onnx}: outputs {', '.join(OUTPUTS)}.{after}",
            f"Wrote the model card: {' and '.join(map(str, self.cards))}.",
        )


def export(run: Run, options: ExportOptions | None = None) -> Exported:
    """Write the run's model as one ONNX file with its card, and check it under onnxruntime."""
    path = check_output((options or ExportOptions()).onnx, run, suffixes=(".onnx",))
    missing = [name for name in _PACKAGES if find_spec(name) is None]
    if missing:
        raise CredalError(
            f"export needs packages that are not installed: {', '.join(missing)}. To fix: pip "
            "install 'credalearn[onnx]'."
        )
    cards = path.with_suffix(".md"), run.path / MODEL / "MODEL_CARD.md"
    for card in cards:
        check_card(card)
    clf = run.load_model()
    temperature, score = clf.temperatures_["truth"], run.deferral_score
    graph = Graph(str(clf.method), clf.model_, temperature, score=score).cpu()
    name, sample = _sample(run, graph, clf._input_shape)
    program = _exported(graph, name, sample)
    guarantee, encoded = run.guarantee, clf._encoder
    if isinstance(encoded, TableEncoder) and encoded.is_plain:
        encoded = None
    made = {} if encoded is None else asdict(encoded)
    kept = {
        "classes": list(run.classes),
        "features": run.facts.inputs.features if encoded is None else encoded.names,
        "encoder": made.get("columns", made) or None,  # one entry per column of a table
        "method": run.facts.learner,
        "credalearn": __version__,
        "threshold": None if guarantee is None else guarantee.threshold,
        "guarantee": None if guarantee is None else guarantee.sentence(),
    }
    texts = {name: json.dumps(value, ensure_ascii=False) for name, value in kept.items()}
    program.model.metadata_props.update(texts)
    program.model.producer_name, program.model.producer_version = "credalearn", __version__
    with whole_file(path) as partial:
        program.save(str(partial), external_data=False)
        _check_same(partial, graph, name, sample)
    of_table = encoded.names if isinstance(encoded, TableEncoder) else ()
    for card in cards:
        write_card(run, card, OUTPUTS, of_table)
    return Exported(path, cards, bool(run.facts.inputs.texts))


def _sample(run: Run, graph: Graph, shape: tuple[int, ...]) -> tuple[str, torch.Tensor]:
    """The name of the input, and random items: features as spread as those of training."""
    generator = torch.Generator().manual_seed(0)
    if len(shape) > 1:
        return "images", 255 * torch.rand(4, *shape, generator=generator)
    noise = torch.randn(_CHECKED, *shape, generator=generator, dtype=torch.float64)
    for layer in graph.modules():
        if isinstance(layer, Standardize):
            spread = 3 if run.facts.inputs.encoder != "tfidf" else shape[0] ** -0.5  # of length 1
            return "features", layer.mean + spread * layer.scale * noise
    return "features", noise


def _exported(graph: Graph, name: str, sample: torch.Tensor) -> Any:
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)  # what the exporter logs is for its own developers
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return torch.onnx.export(
                graph,
                (sample[:2],),
                input_names=[name],
                output_names=list(OUTPUTS),
                dynamic_shapes=({0: torch.export.Dim("items")},),
                dynamo=True,
                verbose=False,
            )
    except Exception as error:  # torch's exporter has no error class of its own
        first = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise CredalError(
            f"torch cannot export this network to ONNX: {first}. To fix: train with another "
            "backbone, such as mlp or resnet18."
        ) from error
    finally:
        logging.disable(before)


def _check_same(path: Path, graph: Graph, name: str, sample: torch.Tensor) -> None:
    """Refuse a file that differs from torch; labels may differ where two classes tie."""
    onnxruntime: Any = import_module("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(path.read_bytes(), options)
    with torch.no_grad():
        wanted = [each.numpy() for each in graph(sample)]
    found = session.run(list(OUTPUTS), {name: sample.numpy()})
    top = np.sort(wanted[1], axis=1)
    clear = top[:, -1] - top[:, -2] > 2 * TOLERANCE
    for output, ours, theirs in zip(OUTPUTS, wanted, found, strict=True):
        rows = clear if output in ("label", "score") else slice(None)
        gap = np.abs(ours[rows].astype(float) - theirs[rows].astype(float)).max(initial=0)
        if not gap <= TOLERANCE:
            raise CredalError(
                f"the ONNX model's {output} differs from torch's by {gap:.2g}; nothing was "
                "written. To fix: report this with the versions of torch, onnx and onnxruntime."
            )
