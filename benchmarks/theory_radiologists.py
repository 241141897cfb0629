"""The risk profile and the generalization bound on the radiologists' votes of the demonstration."""

from collections.abc import Iterator
from dataclasses import dataclass

from sklearn.model_selection import GroupShuffleSplit
from theory_truth import RULES

import credalearn as cl
from credalearn.app.nodules import CLASSES, load_nodules
from credalearn.theory import GeneralizationBound, RiskProfile, bound_of_model, risk_profile

_EPOCHS = 40  # as in the demonstration


@dataclass(frozen=True, slots=True)
class Reading:
    """POCC trained by one rule on 70 % of the patients.

    Args:
        rule: Of the labels.
        diameter: Mean of the other patients' labels.
        profile: On the other patients, against labels by the same rule.
        against_shares: Likewise, against their shares of votes: both ends are one.
        bound: From the patients trained on.
    """

    rule: str
    diameter: float
    profile: RiskProfile
    against_shares: RiskProfile
    bound: GeneralizationBound


def radiologists() -> Iterator[Reading]:
    """Every rule on the same split by patient."""
    nodules = load_nodules()
    splitter = GroupShuffleSplit(1, test_size=0.3, random_state=0)
    training, test = next(splitter.split(nodules.features, groups=nodules.patients))
    shares = cl.from_votes(nodules.votes, rule="precise")
    for rule in RULES:
        labels = cl.from_votes(nodules.votes, rule=rule)
        clf = cl.CredalClassifier("pocc", epochs=_EPOCHS, random_state=0, device="cpu")
        clf.fit(nodules.features[training], labels[training], classes=CLASSES)
        probs = clf.predict_credal(nodules.features[test]).probs
        yield Reading(
            rule=rule,
            diameter=float(labels[test].diameter().mean()),
            profile=risk_profile(probs, labels[test]),
            against_shares=risk_profile(probs, shares[test]),
            bound=bound_of_model(clf.model_, nodules.features[training], labels[training]),
        )
