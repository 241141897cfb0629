"""When to predict and when to defer: thresholds with a guarantee. Imports no torch, no sklearn."""

from credalearn.guarantees.guarantee import CertifyMethod as CertifyMethod
from credalearn.guarantees.guarantee import DeferralScore as DeferralScore
from credalearn.guarantees.guarantee import Guarantee as Guarantee
from credalearn.guarantees.guarantee import Shortfall as Shortfall
from credalearn.guarantees.items import ScoredItems as ScoredItems
from credalearn.guarantees.promises import Promise as Promise
from credalearn.guarantees.thresholds import better_score as better_score
from credalearn.guarantees.thresholds import by_capacity as by_capacity
from credalearn.guarantees.thresholds import certify as certify
