"""The numbers that the paper on POCC published, to compare with."""

from credalearn.bench.published import PublishedValue, published

__all__ = ["PublishedValue", "published"]
