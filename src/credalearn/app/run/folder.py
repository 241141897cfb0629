"""The folder of a run: what ``train`` and ``recalibrate`` write and the other commands read.

``RUN/model/`` is what :meth:`CredalClassifier.save` writes; ``annotations.parquet`` the canonical
table; ``items.parquet`` a row an item; ``predictions.parquet`` a row an item that was not trained
on; ``rule.json`` the certified rule, ``sets.json`` by how much sets are widened, ``run.json`` what
was asked and found, there last.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

import polars as pl

from credalearn._files import whole_file
from credalearn.app.annotations.quiet import quiet_panics
from credalearn.app.annotations.raw import Kind
from credalearn.app.run.facts import lacking_facts
from credalearn.app.run.staging import partial_of
from credalearn.conformal import Inflation
from credalearn.errors import CredalError
from credalearn.estimator import CredalClassifier, load
from credalearn.guarantees import Guarantee
from credalearn.guarantees.truths import Truth

Said = Literal["votes", "bounds", "probabilities"]
# What every run knows of its items.
_ITEMS = ("item", "split", "group", "truth", "digest")
_OF_TRAINING = ("created", "annotations", "inputs", "splits", "later_items", "truth", "versions")
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class RunFolder:
    """A finished run.

    Args:
        path: The folder.
        facts: What was asked and found: the content of ``run.json``, read once.

    Raises:
        CredalError: If it is not there, training did not finish, or ``run.json`` or
            ``items.parquet`` is damaged or lacks what every run has.

    Example:
        >>> from credalearn.app.run.examples import empty_run
        >>> empty_run().classes
        ('cat', 'dog')
    """

    path: Path
    facts: dict[str, Any] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", Path(self.path))
        if not self.path.is_dir():
            again = "give the train command again; it goes on where it stopped"
            fix = again if partial_of(self.path).is_dir() else f"credalearn train … -o {self.path}"
            raise CredalError(f"there is no finished run at {self.path}. To fix: {fix}.")
        if not (self.path / "run.json").is_file():
            raise CredalError(
                f"{self.path} holds no finished run: run.json is missing. To fix: give the train "
                "command again; it goes on where it stopped."
            )
        object.__setattr__(self, "facts", read_json(self.path / "run.json"))
        columns = self._read("items.parquet", pl.read_parquet_schema)
        missing = [f"the column {name!r}" for name in _ITEMS if name not in columns]
        for file, lacking in (("run.json", lacking_facts(self.facts)), ("items.parquet", missing)):
            if lacking:
                raise CredalError(f"{self.path / file} lacks {lacking[0]}. To fix: train again.")

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the classes, in the order of the columns."""
        return tuple(self.facts["classes"])

    @property
    def group(self) -> str | None:
        """What items were split by, such as their patient; None where by nothing."""
        group: str | None = self.facts["splits"].get("group")
        return group

    @property
    def kind(self) -> Kind:
        """What people gave, as it was read."""
        kind: Kind = self.facts["annotations"]["kind"]
        return kind

    @property
    def takes_images(self) -> bool:
        """Whether the model takes images; else features."""
        return bool(self.facts["inputs"]["kind"] == "images")

    @property
    def columns_beside(self) -> list[str]:
        """Columns beside the features that training was told of: they name no items."""
        facts = self.facts
        told = (facts["options"].get(name) for name in ("group", "gold", "split"))
        return [*(name for name in told if name), *facts["inputs"].get("dropped", [])]

    @property
    def said(self) -> Said:
        """What people gave: votes (or how many), lower bounds, or probabilities."""
        kind = self.kind
        return "votes" if kind == "counts" else kind

    @property
    def truth(self) -> Truth:
        """What predictions are right or wrong against."""
        if self.facts["truth"] == "gold":
            return "gold"
        said = self.said
        return "majority" if said == "votes" else said

    @property
    def training(self) -> dict[str, Any]:
        """Where and on what the model was trained: in this run, or in the one it is from.

        ``path``, ``said``, and those facts that a run has of its own which is calibrated again.
        """
        earlier: dict[str, Any] | None = self.facts.get("recalibrated_from")
        if earlier is not None:
            return earlier
        kept = {name: self.facts[name] for name in _OF_TRAINING if name in self.facts}
        return {"path": str(self.path), "said": self.said, **kept}

    @property
    def trained_group(self) -> str | None:
        """The column of groups that the model was trained with; None without."""
        group: str | None = self.training["splits"].get("group")
        return group

    @property
    def items(self) -> pl.DataFrame:
        """A row an item: ``item``, ``split``, ``group``, ``truth``, ``digest``, votes ``n:CLASS``.

        ``digest`` is of what the item holds, by :mod:`credalearn.app.items.digests`. Of items
        that the model was trained on in an earlier run only ``item``, ``split``, ``group`` and
        ``digest`` are known.
        """
        return self._table("items.parquet")

    @property
    def predictions(self) -> pl.DataFrame:
        """A row an item of calibration and test.

        ``item``, ``split``, ``label``, ``probability``, ``lower``, ``upper`` (of that label),
        ``score`` (1 − lower probability), ``mmi``, ``top_probability`` (as an uncertainty),
        ``truth`` (null on ties), ``wrong`` (null on ties), ``disagreement`` (share of votes for
        other labels), and for each class ``p:CLASS``, ``lower:CLASS``, ``upper:CLASS`` and, where
        the set has vertices, ``v0:CLASS``, ``v1:CLASS``, … (of POCC the pessimist and the
        optimist).
        """
        return self._table("predictions.parquet")

    @property
    def rule(self) -> Guarantee | None:
        """What ``credalearn certify`` decided; None before."""
        fix = f"certify again: credalearn certify {self.path} --max-error 0.10"
        return self._certified("rule.json", Guarantee.from_json, fix)

    @property
    def sets(self) -> Inflation | None:
        """What ``credalearn certify --set-coverage`` found; None before."""
        fix = f"credalearn certify {self.path} --set-coverage 0.90; "
        fix += "or remove the file, to predict without widened sets"
        return self._certified("sets.json", Inflation.from_json, fix)

    @property
    def annotations(self) -> pl.DataFrame:
        """The canonical table of annotations; see :class:`~credalearn.app.annotations.Annotations`."""
        return self._table("annotations.parquet")

    def model(self) -> CredalClassifier:
        """The trained classifier."""
        return load(self.path / "model")

    def _certified(self, name: str, parse: Callable[[str], _T], fix: str) -> _T | None:
        path = self.path / name
        if not path.exists():
            return None
        try:
            return parse(path.read_text(encoding="utf-8"))
        except (CredalError, OSError, UnicodeDecodeError) as error:
            reason = error.reason if isinstance(error, CredalError) else error
            raise CredalError(f"{path}: {reason}. To fix: {fix}.") from error

    def _table(self, name: str) -> pl.DataFrame:
        return self._read(name, pl.read_parquet)

    def _read(self, name: str, read: Callable[[Path], _T]) -> _T:
        try:
            with quiet_panics():
                return read(self.path / name)
        except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
            raise CredalError(
                f"{self.path / name} cannot be read: {error}. To fix: train again."
            ) from error


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file.

    Raises:
        CredalError: If it cannot be read.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "rule.json"
        >>> write_json(path, {"threshold": 0.4})
        >>> read_json(path)
        {'threshold': 0.4}
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CredalError(f"{path} cannot be read: {error}. To fix: train again.") from error
    if not isinstance(content, dict):
        raise CredalError(
            f"{path} must hold an object; it holds {type(content).__name__}. To fix: train again."
        )
    return content


def write_json(path: Path, content: dict[str, Any]) -> None:
    r"""Write an object as JSON, whole or not at all.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "run.json"
        >>> write_json(path, {"items": 3})
        >>> path.read_text()
        '{\n  "items": 3\n}\n'
    """
    with whole_file(path) as partial:
        text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)
        partial.write_text(f"{text}\n", encoding="utf-8")
