"""Runs that are shorter or smaller than their setting asks for: every table and figure says so."""

from credalearn_experiments.records import Record


def shortfalls(record: Record, epochs: int | None) -> list[str]:
    """How a run falls short, in words for tables and figures; empty of a whole run.

    Args:
        record: Any run of those shown: they are all of one kind.
        epochs: What the setting asks for; None where the setting is not known.

    Example:
        >>> config = {"epochs": 1, "limit": 128}
        >>> record = Record(setting="s", method="pocc", seed=1, metrics={"ece": 0.1}, config=config)
        >>> shortfalls(record, 150)
        ['epochs 1, not 150', '128 training and test items at most']
    """
    held, limit = record.config.get("epochs"), record.config.get("limit")
    found = []
    if epochs is not None and held is not None and held != epochs:
        found.append(f"epochs {held}, not {epochs}")
    if limit is not None:
        found.append(f"{limit} training and test items at most")
    return found


def subtitle(record: Record, epochs: int | None) -> str:
    r"""The line of a figure that says so, after a line break; nothing of a whole run.

    Example:
        >>> record = Record(
        ...     setting="s", method="pocc", seed=1, metrics={"ece": 0.1}, config={"epochs": 1}
        ... )
        >>> subtitle(record, 150), subtitle(record, 1)
        ('\nA rehearsal: epochs 1, not 150', '')
    """
    found = shortfalls(record, epochs)
    return f"\nA rehearsal: {'; '.join(found)}" if found else ""
