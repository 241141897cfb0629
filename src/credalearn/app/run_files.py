"""The files of a run: each written whole, and checked by its digest when it is read."""

import hashlib
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from textwrap import shorten
from typing import Any, TypeAlias, TypeVar

import msgspec
import polars as pl

from credalearn._files import digest_of_json, whole_file
from credalearn.app.facts import Request, RunFacts
from credalearn.app.staging import recover, sibling
from credalearn.errors import CredalError

_T = TypeVar("_T")
MADE_FROM = "predictions_sha256"  # which predictions a guarantee is about
_SEAL = "content_sha256"
_TABLES = ("annotations", "items", "predictions")
# What certify and recalibrate add to a run, by its field.
ADDED = {
    "guarantee": "guarantee.json",
    "sets": "sets.json",
    "requests": "requests.json",
    "outdated": "drift.json",
}
_STAMPED = ("run.json", *ADDED.values())
Stamps: TypeAlias = dict[str, tuple[int, ...]]
_ATTEMPTS = 10  # to read a run that other processes replace at the same time
_AGAIN = "run the train command again; it resumes where it stopped"


def write_run(
    folder: Path,
    facts: dict[str, Any],
    tables: Mapping[str, pl.DataFrame],
    *,
    model_sha256: str,
    requests: Sequence[Request] = (),
) -> None:
    """Write the tables of a run: annotations, items and predictions."""
    digests = {"model": model_sha256}
    for name, table in tables.items():
        buffer = io.BytesIO()
        table.write_parquet(buffer)
        content = buffer.getvalue()  # a view left by a failed write crashes CPython 3.12.1
        digests[name] = hashlib.sha256(content).hexdigest()
        with whole_file(folder / f"{name}.parquet") as partial:
            partial.write_bytes(content)
    files = {"run.json": asdict(RunFacts(**facts, sha256=digests))}
    if requests:
        asked = [asdict(each) for each in requests]
        made_from = {MADE_FROM: digests["predictions"]}
        files = {"requests.json": {**made_from, "requests": asked}, **files}
    for name, facts_of in files.items():
        with whole_file(folder / name) as partial:
            partial.write_text(to_json(facts_of), encoding="utf-8")


def read_run(path: Path) -> dict[str, Any]:
    """The fields of a :class:`Run`; files that were replaced meanwhile are read again."""
    for _ in range(_ATTEMPTS):
        recover(path)
        stamps, fields, reason = stamps_of(path), dict[str, Any](), None
        try:
            fields = _read(path)
        except CredalError as error:
            reason = error
        if stamps_of(path) == stamps:
            if reason is not None:
                raise reason
            return {**fields, "stamps": stamps}
    raise CredalError(f"{path} is busy: it is being replaced. To fix: wait for it.")


def check_there(path: Path, stamps: Stamps) -> None:
    """Refuse a run that has been replaced since it was read."""
    if stamps and stamp(path / "run.json") != stamps["run.json"]:
        raise CredalError(
            f"{path} has been replaced since it was read. To fix: load the run again; a command "
            "does so when it is run again."
        )


def stamps_of(path: Path) -> Stamps:
    """What changes when files of a run are replaced."""
    return {name: stamp(path / name) for name in _STAMPED}


def stamp(file: Path) -> tuple[int, ...]:
    """What changes when a file is replaced; a look, not an opened file."""
    try:
        found = file.stat()
    except OSError:
        return ()
    return found.st_ino, found.st_size, found.st_mtime_ns


def to_json(content: dict[str, Any]) -> str:
    """JSON text with the SHA-256 of its content, which :func:`parse_json` checks."""
    sealed = {**content, _SEAL: digest_of_json(content)}
    return json.dumps(sealed, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def parse_json(text: bytes, form: type[_T], path: Path, *, fix: str = "train again") -> _T:
    """JSON text that :func:`to_json` wrote as an object of this type; edited text is refused."""
    try:
        content = msgspec.json.decode(text, type=dict[str, Any])
        seal = content.pop(_SEAL, None)
        found = msgspec.convert(content, form)
    except msgspec.ValidationError as error:
        what, _, place = str(error).partition(" - at `$.")
        where = f", field {place.rstrip('`')}" if place else ""
        what = shorten(what[:1].lower() + what[1:], 300)  # it may show a long value
        raise CredalError(f"{path}{where}: {what}. To fix: {fix}.") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise CredalError(f"{path} is damaged: {error}. To fix: {fix}.") from error
    if seal != digest_of_json(content):
        raise CredalError(f"{path} was changed after it was written. To fix: {fix}.")
    return found


def foreign(path: Path, fix: str) -> CredalError:
    """The error of a file that belongs to another run."""
    return CredalError(
        f"{path} does not belong to this run: it was made by another one, or changed. To fix: "
        f"{fix}."
    )


def _read(path: Path) -> dict[str, Any]:
    if not (path / "run.json").is_file():
        if path.exists():
            fix = "name the folder that credalearn train or import wrote"
            raise CredalError(f"{path} is not a run: it contains no run.json. To fix: {fix}.")
        fix = _AGAIN if sibling(path, "partial").is_dir() else f"credalearn train … -o {path}"
        raise CredalError(f"there is no finished run at {path}. To fix: {fix}.")
    facts = parse_json(_bytes(path / "run.json"), RunFacts, path / "run.json")
    fields: dict[str, Any] = {"facts": facts}
    for name in _TABLES:
        file = path / f"{name}.parquet"
        content = _bytes(file)
        if hashlib.sha256(content).hexdigest() != facts.sha256[name]:
            raise foreign(file, "train again")
        fields[name] = pl.read_parquet(io.BytesIO(content))

    return fields | {name: _added(name, path / file, facts) for name, file in ADDED.items()}


def _added(name: str, file: Path, facts: RunFacts) -> Any:
    """What a file says about the predictions of a run, if it is there."""
    if not file.exists():
        return () if name == "requests" else None
    how = "--set-coverage 0.90" if name == "sets" else "--max-error 0.10"
    fix = f"remove the file and run credalearn certify {file.parent} {how}"
    if name == "requests":  # else a run would forget which looks at its items were paid for
        fix = "restore the file, or recalibrate on new items"
    content = parse_json(_bytes(file), dict[str, Any], file, fix=fix)
    if content.pop(MADE_FROM, None) != facts.sha256["predictions"]:
        raise foreign(file, fix)
    try:
        if name == "guarantee":
            return import_module("credalearn.guarantees").Guarantee.from_json(json.dumps(content))
        if name == "sets":
            return import_module("credalearn.conformal").Inflation.from_json(json.dumps(content))
        form = tuple[Request, ...] if name == "requests" else str
        return msgspec.convert(content[name], form)
    except (CredalError, KeyError, msgspec.ValidationError) as error:  # of another version
        why = shorten(CredalError(str(error)).reason, 300)
        raise CredalError(f"{file}: {why}. To fix: {fix}.") from error


def _bytes(path: Path) -> bytes:
    try:
        if path.exists() and not path.is_file():  # a pipe would never end
            raise OSError(f"{path.name} is not a regular file")
        return path.read_bytes()
    except OSError as error:
        why = error.strerror or error
        raise CredalError(f"{path} cannot be read: {why}. To fix: train again.") from error
