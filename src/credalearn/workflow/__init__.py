"""From an annotation export to certified decisions, step by step through a folder a run."""

from credalearn.workflow.folder import RunFolder

__all__ = ["RunFolder"]
