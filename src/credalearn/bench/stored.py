"""What a store holds: the runs of a setting as it has them, and settings that are not known."""

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from credalearn.bench.runs import Run, plan
from credalearn.bench.setting import Setting
from credalearn.bench.store import Store


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
        >>> from credalearn.bench.catalogue import ALL_SETTINGS
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
