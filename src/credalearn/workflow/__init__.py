"""From an annotation export to certified decisions, step by step through a folder a run."""

from credalearn.workflow.run.folder import RunFolder

__all__ = ["RunFolder"]
