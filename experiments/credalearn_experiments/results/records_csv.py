"""Records as one table, a row a run, for programs that read CSV."""

import csv
import io
from collections.abc import Sequence

from credalearn._escape import escape_csv
from credalearn_experiments.records import Record


def records_csv(records: Sequence[Record]) -> str:
    """Setting, method and seed of every run, then every metric that any has, by name.

    Metrics are fractions as in the records, empty where a run has none. A text that a spreadsheet
    would run as a formula gets an apostrophe in front.

    Example:
        >>> first = Record(setting="s", method="pocc", seed=1, metrics={"ece": 0.02})
        >>> second = Record(setting="s", method="pocc", seed=2, metrics={"accuracy": 0.9})
        >>> print(records_csv([first, second]))
        setting,method,seed,accuracy,ece
        s,pocc,1,,0.02
        s,pocc,2,0.9,
        <BLANKLINE>
    """
    metrics = sorted({name for record in records for name in record.metrics})
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["setting", "method", "seed", *map(escape_csv, metrics)])
    for record in records:
        values = [record.metrics.get(name, "") for name in metrics]
        names = map(escape_csv, (record.setting, record.method))
        writer.writerow([*names, record.seed, *values])
    return file.getvalue()
