"""See ``credalearn.app.steps.inspect``."""

from credalearn.app.annotations.table import Annotations
from credalearn.app.facts import AnnotationFacts
from credalearn.app.steps.inspect import inspect


def inspection(annotations: Annotations) -> list[str]:
    """Lines that say what was read and how far people agree."""
    return inspect(annotations).lines()


def annotation_facts(annotations: Annotations) -> AnnotationFacts:
    """The same for ``run.json``."""
    return inspect(annotations).facts
