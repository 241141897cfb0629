"""From an annotation export to certified decisions, step by step through a folder a run."""

from credalearn.app.run.folder import RunFolder

__all__ = ["RunFolder"]
