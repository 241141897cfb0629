"""What a store holds: runs of a setting, settings that are not known, what a run predicted."""

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from torch import Tensor

from credalearn._checks import check_choice
from credalearn._tensors import read_tensors
from credalearn.errors import CredalError
from credalearn.predictions import CredalPredictions
from credalearn_experiments.running.runs import Run, plan
from credalearn_experiments.running.store import PREDICTIONS, Store
from credalearn_experiments.settings import Setting


def unknown_settings(folder: Path, known: Collection[str]) -> list[str]:
    """Names of settings that a store has runs of and that are not among the known, in order.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> run = folder / "my-setting" / "pocc" / "seed-1"
        >>> run.mkdir(parents=True)
        >>> _ = (run / "config.json").write_text("{}")
        >>> unknown_settings(folder, ["cifar10h"])
        ['my-setting']
    """
    held = {path.parts[-4] for path in folder.glob("*/*/seed-*/config.json")}
    return sorted(held - set(known))


def stored_runs(
    folder: Path,
    setting: Setting,
    *,
    limit: int | None = None,
    independent: bool = False,
    weights: Path | None = None,
    epochs: int | None = None,
) -> list[Run]:
    """Every run of a setting; what is not given is as the store has it, where it has some of them.

    So a rehearsal can be looked at without its options.

    Args:
        folder: Of the store.
        setting: With the methods and seeds that are wanted.
        limit: At most so many items.
        independent: Whether ensembles have networks of their own.
        weights: File that pretrained networks start from.
        epochs: Of every training.

    Example:
        >>> import tempfile
        >>> from credalearn_experiments.settings.catalog import ALL_SETTINGS
        >>> setting = ALL_SETTINGS["cifar10h"].narrowed(methods=("pocc",), seeds=(1,))
        >>> stored_runs(Path(tempfile.mkdtemp()), setting)[0].setting.recipe.epochs
        150
    """
    held = Store(folder).configurations(setting.name)
    first = held[0] if held else {}
    runs = plan(
        [setting.narrowed(epochs=epochs or first.get("epochs"))],
        independent=independent or any(each.get("members") == "independent" for each in held),
        limit=limit or first.get("limit"),
        weights=weights,
    )
    return [replace(run, weights=run.weights or first.get("weights")) for run in runs]


def read_predictions(
    folder: str | Path, setting: str, method: str, seed: int, *, part: str = "test"
) -> CredalPredictions:
    """What a finished run predicted, by the names that its folder has.

    The same file holds the true classes of the test items as ``y`` and, where there are any, the
    votes on the held-out items as ``voted_counts``.

    Args:
        folder: Of the store.
        setting: Its name.
        method: Its name.
        seed: Of the run.
        part: ``"test"``, ``"voted"`` for items with held-out votes, or a foreign set such as
            ``"svhn"``.

    Raises:
        CredalError: If there is no such run, its file is damaged, or it has no such part.

    Example:
        >>> read_predictions("store", "cifar10h", "pocc", 99)
        Traceback (most recent call last):
        credalearn.errors.CredalError: there is no
        store/cifar10h/pocc/seed-99/predictions.safetensors. To fix: do that run with
        `credalearn-experiments run`.
    """
    path = Path(folder) / setting / method / f"seed-{seed}" / PREDICTIONS
    if not path.is_file():
        raise CredalError(
            f"there is no {path}. To fix: do that run with `credalearn-experiments run`."
        )
    fix = "delete it; `credalearn-experiments run` then measures that run again"
    tensors, _ = read_tensors(path, fix=fix)
    parts: dict[str, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        place, dot, field = name.rpartition(".")
        if dot:
            parts.setdefault(place, {})[field] = tensor
    check_choice(part, parts, name=f"the part of {path}")
    return CredalPredictions(**parts[part])
