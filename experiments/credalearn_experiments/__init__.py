"""The paper's experiments and ours: settings, data, runs, and their records into tables.

``credalearn-experiments`` is the command; docs/extending.md tells of methods, tasks and settings of your
own. Here stand the figures that the paper on POCC published, to compare with.
"""

from credalearn_experiments.published import PublishedValue, published

__all__ = ["PublishedValue", "published"]
