"""The paper's experiments and ours: settings, data, runs, and tables of their records.

``credalearn-experiments`` is the command; docs/extending.md shows how to add methods, tasks and
settings. ``published`` contains the figures of the paper on POCC, to compare with.
"""

from credalearn_experiments.published import PublishedValue, published

__all__ = ["PublishedValue", "published"]
