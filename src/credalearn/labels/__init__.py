"""Credal sets from votes, posteriors, soft labels, teachers, smoothing and statements."""

from credalearn.labels.soft import (
    at_least,
    collapse,
    contaminate,
    from_teacher,
    hull,
    precise,
    relax,
    smooth,
)
from credalearn.labels.statements import from_statements, statement_conflicts
from credalearn.labels.votes import PROMISING, VOTE_RULES, VoteRule, from_posterior, from_votes

__all__ = [
    "PROMISING",
    "VOTE_RULES",
    "VoteRule",
    "at_least",
    "collapse",
    "contaminate",
    "from_posterior",
    "from_statements",
    "from_teacher",
    "from_votes",
    "hull",
    "precise",
    "relax",
    "smooth",
    "statement_conflicts",
]
