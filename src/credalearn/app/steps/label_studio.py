"""Label Studio's tasks and labeling interface, as its documentation describes them.

Tasks are its basic JSON format with ``predictions``: https://labelstud.io/guide/predictions. The
names below tie a prediction to the interface: ``from_name`` is the name of the choices, ``to_name``
the name of what is shown.
"""

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.sax.saxutils import quoteattr

from credalearn._files import whole_file
from credalearn._formats import visible

CHOICES, SHOWN, ROW = "label", "item", "row"
LOCAL_FILES = "/data/local-files/?d="  # where Label Studio serves files of its own machine
_FIELD = re.compile(r"\w+", re.ASCII)  # a field that Label Studio finds as $NAME


def task(
    item: str,
    shown: dict[str, str],
    row: dict[str, Any],
    *,
    label: str | None,
    lower: float,
    model: str,
) -> dict[str, Any]:
    """One task, with the model's prediction."""
    data = {"item": item, **({ROW: row} if row else {}), **shown}
    made: dict[str, Any] = {"data": data}
    if label is not None:
        result = {
            "id": "predicted",
            "from_name": CHOICES,
            "to_name": SHOWN,
            "type": "choices",
            "value": {"choices": [label]},
        }
        made["predictions"] = [{"model_version": model, "score": lower, "result": [result]}]
    return made


def write_tasks(path: Path, tasks: Iterable[dict[str, Any]]) -> None:
    """Write tasks as a JSON list, one task per line."""
    with whole_file(path) as partial, partial.open("w", encoding="utf-8") as file:
        before = "[\n"
        for each in tasks:
            file.write(before + json.dumps(each, ensure_ascii=False, allow_nan=False))
            before = ",\n"
        file.write("\n]\n")


def field_name(column: str) -> str:
    """The field of a column: ``text`` where Label Studio cannot find it by its own name."""
    return column if _FIELD.fullmatch(column) and column not in ("item", ROW) else "text"


def interface(classes: Iterable[str], *, image: bool, field: str, row: bool) -> str:
    """The labeling interface of the tasks, as XML."""
    choices = "\n".join(f"    <Choice value={quoteattr(visible(name))}/>" for name in classes)
    tag = "Image" if image else "Text"
    table = f'  <Table name="{ROW}" value="${ROW}"/>\n' if row else ""
    return (
        f'<View>\n  <{tag} name="{SHOWN}" value={quoteattr(f"${field}")}/>\n{table}'
        f'  <Choices name="{CHOICES}" toName="{SHOWN}" choice="single" required="true">\n'
        f"{choices}\n  </Choices>\n</View>\n"
    )


def image_address(path: str, prefix: str = LOCAL_FILES) -> str:
    """Where the annotator's browser finds an image."""
    return prefix + quote(path, safe="/")
