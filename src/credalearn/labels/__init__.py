"""Votes, posteriors, soft labels, a teacher, smoothing and statements into credal sets."""

from credalearn.labels.collapse import collapse
from credalearn.labels.contamination import contaminate
from credalearn.labels.hulls import hull
from credalearn.labels.posterior import from_posterior
from credalearn.labels.smoothing import smooth
from credalearn.labels.soft import precise, relax
from credalearn.labels.statements import at_least
from credalearn.labels.teacher import from_teacher
from credalearn.labels.vote_rules import PROMISING, VOTE_RULES, VoteRule
from credalearn.labels.votes import from_votes

__all__ = [
    "PROMISING",
    "VOTE_RULES",
    "VoteRule",
    "at_least",
    "collapse",
    "contaminate",
    "from_posterior",
    "from_teacher",
    "from_votes",
    "hull",
    "precise",
    "relax",
    "smooth",
]
