"""Where votes must count once each, weights are refused."""

from credalearn.app.annotations.places import shown
from credalearn.app.annotations.table import Annotations
from credalearn.errors import CredalError


def refuse_weights(annotations: Annotations, *, rule: str, instead: str) -> None:
    """Refuse votes with a weight other than 1, whole or not; an unsure vote counts nowhere.

    Args:
        annotations: Of any kind; only votes have weights.
        rule: What wants plain votes, to begin the message with.
        instead: What else would help than to do without the weights.

    Raises:
        CredalError: If a vote has such a weight.

    Example:
        >>> from credalearn.app.annotations.examples import three_items
        >>> refuse_weights(three_items(), rule="votes are counted", instead="")
    """
    if annotations.kind != "votes":
        return
    weights = annotations.table["weight"].to_numpy()
    weighted = (weights != 1) & (annotations.codes("label") >= 0)
    if not weighted.any():
        return
    row = int(weighted.argmax())
    raise CredalError(
        f"{rule}; a vote about item {shown(annotations.table['item'][row])} of "
        f"{annotations.source.path} has the weight {weights[row]:g}. To fix: leave --weight out, "
        f"or drop the column 'weight', which is read unasked{instead}."
    )
