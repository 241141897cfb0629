"""Records of runs that never were, for tests of what reads records."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from credalearn_experiments.records import CURVE_POINTS, Record
from credalearn_experiments.runs import member_seeds
from credalearn_experiments.settings.catalog import ALL_SETTINGS

VOTED = ("cifar10h-voted", "cifar10h-features", "cifar10n", "cifar10n-voted", "cifar10h-new-votes")
VOTED_METRICS = (
    *("error_at_80", "error_at_90", "human_cross_entropy", "human_error", "human_error_at_80"),
    *("ece_tempered", "human_error_at_90", "human_coverage", "human_gap", "set_width_90_plain"),
    *("set_coverage_90", "set_width_90", "set_coverage_95", "set_width_95"),
)


def one(**changes: Any) -> Record:
    """A record, with something else than usual."""
    given = {"setting": "cifar10h", "method": "pocc", "seed": 1, "metrics": {"accuracy": 0.9}}
    return Record(**{**given, **changes})


def fake_records(
    setting: str = "cifar10h",
    *,
    methods: Sequence[str] | None = None,
    seeds: Sequence[int] | None = None,
) -> list[Record]:
    """A record for every method and seed of the setting, with every metric: random, but fixed."""
    records, known = [], ALL_SETTINGS[setting]
    rejected = np.linspace(0, 1, CURVE_POINTS)
    for place, method in enumerate(methods or known.methods):
        for seed in seeds or known.seeds:
            noise = np.random.default_rng([place, seed])
            accuracy = 0.85 + 0.007 * place + 0.003 * noise.standard_normal()
            auarc = 0.965 + 0.002 * place + 0.0008 * noise.standard_normal()
            metrics = {
                "accuracy": accuracy,
                "ece": 0.02 + 0.011 * ((3 * place) % 7) + 0.002 * noise.random(),
                "auarc": auarc,
                "normalized_auarc": (auarc - accuracy) / (1 - accuracy),
                "spearman_error": 0.8 + 0.02 * place + 0.01 * noise.standard_normal(),
                "auarc_top_probability": auarc + 0.001,
                "auarc_lower_probability": auarc + 0.002,
            }
            if method.startswith("pocc"):
                metrics |= {"auarc_mmi": auarc, "auarc_entropy_difference": auarc - 0.003}
            if known.task in VOTED:
                metrics |= {name: 0.05 + 0.01 * noise.random() for name in VOTED_METRICS}
            for name in known.foreign:
                own = 0.8 + 0.02 * noise.random()
                key = name.replace("-", "_")
                metrics |= {f"auroc_{key}": own, f"auroc_top_probability_{key}": own + 0.01}
            curve = accuracy + (0.999 - accuracy) * (1 - (1 - rejected) ** (2 + place / 4))
            used = member_seeds(method, seed, known.seeds)
            record = Record(
                setting=setting,
                method=method,
                seed=seed,
                metrics=metrics,
                curves={"accuracy_rejection": tuple(curve.tolist())},
                config={
                    "members": "shared",
                    "member_seeds": [*used],
                    "epochs": known.recipe.epochs,
                },
                versions={"credalearn": "0"},
                seconds=26.1,
            )
            records.append(record)
    return records
