"""Votes, soft labels, a teacher, smoothing and statements into credal sets."""

from credalearn.labels.collapse import collapse
from credalearn.labels.smoothing import smooth
from credalearn.labels.soft import precise, relax
from credalearn.labels.statements import at_least
from credalearn.labels.teacher import from_teacher
from credalearn.labels.votes import from_votes

__all__ = ["at_least", "collapse", "from_teacher", "from_votes", "precise", "relax", "smooth"]
