"""Which settings have runs, the paper's and ours: how many seeds, what is missing, and why."""

from collections import Counter
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from credalearn._formats import enumerated
from credalearn.errors import CredalError
from credalearn_experiments.records import Record
from credalearn_experiments.results.balance import paper_methods
from credalearn_experiments.results.published import compare, published
from credalearn_experiments.results.seeds import POCC_COLLAPSED, Runs, has, runs_of
from credalearn_experiments.results.table import Column, Table, Value
from credalearn_experiments.settings import Setting
from credalearn_experiments.settings.paper import SETTINGS

REASONS = "not-run.csv"
"""In a folder of records: patterns of settings, and why they are not, or only partly, run."""

_NAMES = ("seeds of each method", "missing", "why", "published figures answered")


def read_reasons(folder: Path) -> dict[str, str]:
    """Reasons by pattern of settings, in the order of the file; none without such a file."""
    path = folder / REASONS
    if not path.exists():
        return {}
    lines = path.read_text(encoding="utf-8").splitlines()
    pairs = [line.partition(",") for line in lines[1:] if line]
    if lines[:1] != ["setting,reason"] or not all(reason for _, _, reason in pairs):
        raise CredalError(f"{path} must start with 'setting,reason' and have both on every line.")
    return {pattern: reason for pattern, _, reason in pairs}


def state_page(records: Sequence[Record], reasons: Mapping[str, str]) -> list[Table | str]:
    """One row for each setting of the paper, and of ours on images, run or not."""
    held = {record.setting for record in records}
    answered = Counter(row.setting for row in compare(records))
    printed = Counter(row.our_setting for row in published())
    rows: dict[str, dict[str, Value]] = {}
    for name, setting in SETTINGS.items():
        runs = runs_of(records, name) if name in held else {}
        missing = _missing(setting, runs)
        why = next((reasons[x] for x in reasons if fnmatchcase(name, x)), "") if missing else ""
        figures = f"{answered[name]} of {printed[name]}" if setting.published else ""
        texts = (_seeds(name, runs), missing, why, figures)
        rows[name] = {column: text or None for column, text in zip(_NAMES, texts, strict=True)}
    columns = [Column(x, marked=False, percent=False, text=x != _NAMES[-1]) for x in _NAMES]
    paper = [name for name, setting in SETTINGS.items() if setting.published]
    done = sum(bool(rows[name][_NAMES[0]]) for name in paper)
    total = f"{answered.total():,} of {sum(printed[name] for name in paper):,}"
    note = f"{done} of the paper's {len(paper)} settings have runs; {total} figures are answered."
    return [Table("The paper's settings, and ours", columns, rows, corner="setting"), note]


def _seeds(setting: str, runs: Runs) -> str:
    """Methods by their number of seeds, such as ``10: the paper's 7, softmax``."""
    groups: dict[int, list[str]] = {}
    for method, found in runs.items():
        name = "pocc on collapsed labels" if method == POCC_COLLAPSED else method
        groups.setdefault(len(found), []).append(name)
    paper = paper_methods(setting)
    texts = []
    for count, methods in groups.items():
        if set(paper) <= set(methods):
            methods = [f"the paper's {len(paper)}", *(m for m in methods if m not in paper)]
        texts.append(f"{count}: {', '.join(methods)}")
    return "; ".join(texts)


def _missing(setting: Setting, runs: Runs) -> str:
    """Methods, seeds and foreign images that the paper has and the records do not."""
    if not runs:
        return "all"
    fewest = min(len(runs[method]) for method in setting.methods if method in runs)
    places = [x for x in setting.foreign if not has(runs, f"auroc_{x.replace('-', '_')}")]
    parts = [method for method in setting.methods if method not in runs]
    parts += [f"{len(setting.seeds) - fewest} seeds"] if fewest < len(setting.seeds) else []
    parts += [f"foreign images of {enumerated(places)}"] if places else []
    return ", ".join(parts)
