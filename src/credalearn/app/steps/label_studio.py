"""Label Studio's tasks and labeling interface, as its documentation describes them.

Tasks are its basic JSON format with ``predictions``: https://labelstud.io/guide/predictions. The
names below tie a prediction to the interface: ``from_name`` is that of the choices, ``to_name``
that of what is shown.
"""

from typing import Any
from urllib.parse import quote
from xml.sax.saxutils import quoteattr

CHOICES, SHOWN, ROW = "label", "item", "row"
LOCAL_FILES = "/data/local-files/?d="  # Label Studio's own address of files on its machine


def task(
    item: str, data: dict[str, Any], *, label: str | None, lower: float, model: str
) -> dict[str, Any]:
    """One task, with what the model says of it.

    Args:
        item: Its name, in ``data.item``, by which the export is read back.
        data: What else is known of it.
        label: The predicted class; None leaves the prediction out.
        lower: Its lower probability, as ``score``: Label Studio shows the lowest first.
        model: What the prediction is signed with, ``model_version``.

    Example:
        >>> made = task("x", {"image": "x.png"}, label="cat", lower=0.4, model="run 1")
        >>> made["data"], made["predictions"][0]["result"][0]["value"]
        ({'item': 'x', 'image': 'x.png'}, {'choices': ['cat']})
    """
    made: dict[str, Any] = {"data": {"item": item, **data}}
    if label is not None:
        result = {
            "id": "predicted",  # of its own within the task
            "from_name": CHOICES,
            "to_name": SHOWN,
            "type": "choices",
            "value": {"choices": [label]},
        }
        made["predictions"] = [{"model_version": model, "score": lower, "result": [result]}]
    return made


def interface(classes: tuple[str, ...], *, image: bool, field: str, row: bool = False) -> str:
    """The labeling interface that the tasks fit, as XML.

    Args:
        classes: What can be chosen, one of them.
        image: Whether the item is an image; else text.
        field: The field of the task that is shown.
        row: Whether the tasks hold names and numbers of the item's row, to be shown as a table.

    Example:
        >>> print(interface(("cat", "<dog>"), image=True, field="image"))
        <View>
          <Image name="item" value="$image"/>
          <Choices name="label" toName="item" choice="single" required="true">
            <Choice value="cat"/>
            <Choice value="&lt;dog&gt;"/>
          </Choices>
        </View>
    """
    choices = "\n".join(f"    <Choice value={quoteattr(name)}/>" for name in classes)
    tag = "Image" if image else "Text"
    table = f'  <Table name="{ROW}" value="${ROW}"/>\n' if row else ""
    return (
        f'<View>\n  <{tag} name="{SHOWN}" value={quoteattr(f"${field}")}/>\n{table}'
        f'  <Choices name="{CHOICES}" toName="{SHOWN}" choice="single" required="true">\n'
        f"{choices}\n  </Choices>\n</View>"
    )


def image_address(path: str, prefix: str = LOCAL_FILES) -> str:
    """Where the annotator's browser finds an image.

    Example:
        >>> image_address("scans/a b.png")
        '/data/local-files/?d=scans/a%20b.png'
    """
    return prefix + quote(path, safe="/")
