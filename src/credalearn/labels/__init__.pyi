"""Credal sets from votes, posteriors, soft labels, teachers, smoothing and statements."""

from credalearn.labels.soft import at_least as at_least
from credalearn.labels.soft import collapse as collapse
from credalearn.labels.soft import contaminate as contaminate
from credalearn.labels.soft import from_teacher as from_teacher
from credalearn.labels.soft import hull as hull
from credalearn.labels.soft import precise as precise
from credalearn.labels.soft import relax as relax
from credalearn.labels.soft import smooth as smooth
from credalearn.labels.statements import from_statements as from_statements
from credalearn.labels.statements import statement_conflicts as statement_conflicts
from credalearn.labels.votes import PROMISING as PROMISING
from credalearn.labels.votes import VOTE_RULES as VOTE_RULES
from credalearn.labels.votes import VoteRule as VoteRule
from credalearn.labels.votes import from_posterior as from_posterior
from credalearn.labels.votes import from_votes as from_votes
