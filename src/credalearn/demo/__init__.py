"""A demonstration on real data that ships with the package: radiologists who disagree."""

from credalearn.bench.data.lidc import Nodules, load_nodules

__all__ = ["Nodules", "load_nodules"]
