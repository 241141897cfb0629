"""The default learner: folds, candidates, and predictions out of fold."""

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression
from torch.testing import assert_close

import credalearn as cl
from clouds import clouds
from credalearn import _selection
from credalearn._folds import Items, make_folds
from credalearn._selection import linear_path
from credalearn._targets import truth_of
from credalearn._temperature import fit_temperature
from present import present


def items_of(X: np.ndarray, labels: cl.CredalSet) -> Items:
    labels = labels.to(dtype=torch.float64)
    classes = np.arange(labels.num_classes)
    return Items(torch.from_numpy(X), labels, truth_of(labels, None, classes))


def unheard(text: str, share: float) -> None:
    """Report to nobody."""


def rings(num_items: int) -> tuple[np.ndarray, np.ndarray]:
    """Items (N, 2) inside and outside a circle: no line separates them."""
    X = np.random.default_rng(0).normal(size=(num_items, 2))
    return X, (np.hypot(*X.T) > 1.2).astype(int)


def one_hot(y: np.ndarray, num_classes: int) -> torch.Tensor:
    return torch.eye(num_classes, dtype=torch.float64)[torch.from_numpy(y)]


def test_folds_spread_the_classes_evenly() -> None:
    y = np.repeat([0, 1, 2], [60, 30, 9])
    folds = make_folds(one_hot(y, 3), None, random_state=0)
    for number in range(3):
        counts = np.bincount(folds[y == number], minlength=4)
        assert counts.max() - counts.min() <= 1
    assert np.bincount(folds).max() - np.bincount(folds).min() <= 1
    assert (folds == make_folds(one_hot(y, 3), None, random_state=0)).all()
    assert (folds != make_folds(one_hot(y, 3), None, random_state=1)).any()


@pytest.mark.catches(
    "_folds.py",
    "names = np.arange(len(truth)) if groups is None else np.asarray(groups)",
    "names = np.arange(len(truth))",
)
def test_the_classifier_keeps_groups_together() -> None:
    X, y, _ = clouds()
    groups = np.arange(90) // 9
    for given in (
        groups,
        [f"patient {each}" for each in groups],
        [*groups[:-9].tolist(), *["other"] * 9],  # of two types
    ):
        clf = cl.CredalClassifier().fit(X, y, groups=given)
        assert all(len(set(present(clf.folds_)[groups == group])) == 1 for group in range(10))
    with pytest.raises(cl.CredalError, match=r"at least two groups of items .* got 1\."):
        cl.CredalClassifier().fit(X, y, groups=np.zeros(90))
    with pytest.raises(cl.CredalError, match=r"at least two items to compare models; got 1"):
        cl.CredalClassifier().fit([[0.0]], [[0.5, 0.5]])
    with pytest.raises(cl.CredalError, match=r"groups must have shape \(90,\), as y; got \(9,\)"):
        cl.CredalClassifier().fit(X, y, groups=np.arange(9))


def test_a_random_state_decides_every_bit() -> None:
    X, _, counts = clouds()
    labels = cl.from_votes(counts)
    torch.manual_seed(3)
    expected = torch.rand(3)
    torch.manual_seed(3)
    first, second, other = (cl.CredalClassifier(random_state=n).fit(X, labels) for n in (0, 0, 1))
    assert torch.equal(torch.rand(3), expected)  # the caller's random numbers
    assert np.array_equal(first.predict_proba(X), second.predict_proba(X))
    assert first.choice_ == second.choice_
    assert first.temperatures_ == second.temperatures_
    assert (present(first.folds_) != other.folds_).any()


def test_chooses_a_network_where_only_a_network_learns() -> None:
    X, y = rings(1500)
    few = present(cl.CredalClassifier().fit(X[:400], y[:400]).choice_)
    assert few.backbone == "linear"  # too few items to try
    clf = cl.CredalClassifier().fit(X[:1200], y[:1200])
    assert clf.choice_ is not None
    assert clf.choice_.backbone == "mlp"
    assert clf.choice_.epochs is not None
    assert clf.choice_.words.startswith("a network with two hidden layers and ")
    assert clf.score(X[1200:], y[1200:]) > 0.95
    assert clf.model_.members[0](torch.from_numpy(X)).shape == (1500, 3, 2)
    out_of_fold = present(clf.out_of_fold_)
    assert (out_of_fold.classes.numpy() == y[:1200]).mean() > 0.95
    with pytest.raises(cl.CredalError, match=r"X is sparse, .* To fix: pass X\.toarray\(\)"):
        clf.predict(csr_array(X))


def test_chooses_the_linear_model_where_it_is_right() -> None:
    random = np.random.default_rng(0)
    X = random.normal(size=(1200, 4))
    right = 1 / (1 + np.exp(-2 * X[:, 0] + X[:, 1]))
    votes = random.binomial(5, right)
    clf = cl.CredalClassifier().fit(X, cl.from_votes(np.stack([5 - votes, votes], 1)))
    assert clf.choice_ is not None
    assert clf.choice_.backbone == "linear"
    assert clf.choice_.words.startswith("a linear model with penalty ")
    assert clf.choice_.candidates > 3  # penalties, and the network that lost
    votes_meant = clf.predict_credal(X, meaning="votes").probs[:, 1].numpy()
    assert np.abs(votes_meant - right).mean() < 0.05


@pytest.mark.catches(
    "_folds.py",
    "np.flatnonzero(folds != fold) for fold in",
    "np.flatnonzero(folds == fold) for fold in",
)
def test_predictions_out_of_fold_come_from_models_without_the_item(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another label of an item changes the predictions of other folds, and not its own."""
    monkeypatch.setattr(_selection, "PENALTIES", (1e-2,))
    X, _, counts = clouds()
    folds = np.arange(90) % 4
    shares = counts / counts.sum(1, keepdims=True)
    changed = shares.copy()
    changed[17] = changed[17, [1, 2, 0]]
    assert not np.allclose(changed[17], shares[17])
    first, second = (
        linear_path(items_of(X, cl.relax(each)), folds, torch.from_numpy(each), unheard).probs
        for each in (shares, changed)
    )
    own = folds == folds[17]
    assert torch.equal(first[own], second[own])
    assert (first[~own] != second[~own]).any(1).all()


def test_a_penalty_is_chosen_by_the_tempered_likelihood_out_of_fold() -> None:
    random = np.random.default_rng(0)
    X = random.normal(size=(200, 40))
    y = (X[:, 0] + random.normal(size=200) > 0).astype(int)
    items = items_of(X, cl.precise(one_hot(y, 2)))
    folds = make_folds(items.truth, None, random_state=0)
    path = linear_path(items, folds, items.truth, unheard)
    costs = {}
    for penalty in _selection.PENALTIES:
        probs = np.empty((200, 2))
        for fold in range(4):
            train, test = folds != fold, folds == fold
            mean, std = X[train].mean(0), X[train].std(0)
            # Two columns of weights, w/2 and -w/2, have half the squares of one, w.
            model = LogisticRegression(C=2 / (train.sum() * penalty * 40), tol=1e-8, max_iter=1000)
            model.fit((X[train] - mean) / std, y[train])
            probs[test] = model.predict_proba((X[test] - mean) / std)
        costs[penalty] = items.cost(torch.from_numpy(probs))
        if penalty == path.penalty:
            assert_close(path.probs.double(), torch.from_numpy(probs), atol=2e-3, rtol=0)
    assert costs[path.penalty] <= min(costs.values()) + 5e-4
    assert path.penalty > min(costs)  # and not the weakest


def test_a_class_may_be_missing_from_a_fold() -> None:
    X, y, _ = clouds()
    names = np.array(["a", "b", "c"])[y]
    names[4] = "rare"
    clf = cl.CredalClassifier().fit(X, names)
    assert clf.predict_proba(X).shape == (90, 4)
    assert clf.score(X, names) > 0.9
    named = cl.CredalClassifier().fit(X, y, classes=[0, 1, 2, 3])  # a class that nobody has
    assert named.predict_proba(X)[:, 3].max() < 0.05


def test_a_gold_label_is_the_truth_that_probabilities_are_about() -> None:
    """Annotators who are right less often than they agree: their majority is no truth."""
    random = np.random.default_rng(0)
    X = random.normal(size=(300, 3))
    said = (X[:, 0] > 0).astype(int)
    gold = np.where(random.random(300) < 0.3, 1 - said, said)
    counts = 5 * np.eye(2, dtype=int)[said]
    names = np.array(["cat", "dog"])
    given = names[gold]
    with_gold = cl.CredalClassifier().fit(
        X, cl.from_votes(counts), classes=names, truth=given.tolist()
    )
    without = cl.CredalClassifier().fit(X, cl.from_votes(counts), classes=names)
    assert with_gold.temperatures_["truth"] > 2 * without.temperatures_["truth"]
    probs = with_gold.predict_proba(X).max(1)
    assert 0.6 < probs.mean() < 0.75
    assert without.predict_proba(X).max(1).mean() > 0.9
    for wrong, message in (
        (given[:9], r"for each of the 300 items; got shape \(9,\)"),
        (np.where(gold, "dog", "owl"), "got 'owl'"),
    ):
        with pytest.raises(
            cl.CredalError, match=f"truth must have one of the classes .* {message}"
        ):
            cl.CredalClassifier().fit(X, cl.from_votes(counts), classes=names, truth=wrong)


def held_out_votes() -> tuple[np.ndarray, np.ndarray]:
    """Items (N, 2) and five votes each (N, 2), of people who disagree often."""
    random = np.random.default_rng(1)
    X = random.normal(size=(800, 2))
    votes = random.binomial(5, 1 / (1 + np.exp(-X[:, 0])))
    return X, np.stack([5 - votes, votes], 1)


@pytest.mark.catches(
    "classifier.py",
    '{"truth": items.truth, "votes": items.labels.reference}',
    '{"truth": items.labels.reference, "votes": items.labels.reference}',
)
def test_each_meaning_is_better_at_what_it_is_about() -> None:
    X, counts = held_out_votes()
    clf = cl.CredalClassifier().fit(X[:400], cl.from_votes(counts[:400]))
    shares = counts[400:] / 5
    targets = {"votes": shares, "truth": np.eye(2)[shares.argmax(1)]}

    def cost(meaning: str, target: np.ndarray) -> float:
        probs = clf.predict_credal(X[400:], meaning=meaning).probs.numpy()  # type: ignore[arg-type]
        return float(-(target * np.log(probs)).sum(1).mean())

    assert cost("votes", targets["votes"]) < cost("truth", targets["votes"]) - 0.01
    assert cost("truth", targets["truth"]) < cost("votes", targets["truth"]) - 0.01
    assert clf.temperatures_["truth"] < clf.temperatures_["votes"]
    truth, votes = (clf.predict_credal(X, meaning=each) for each in ("truth", "votes"))
    # What the next annotator says is the head that learned the vote shares, which is in the set.
    assert torch.equal(votes.probs, present(votes.vertices)[:, 2])
    assert (votes.classes == truth.classes).double().mean() > 0.95
    assert_close(clf.predict_proba(X), truth.probs.double().numpy(), atol=1e-6, rtol=0)
    with pytest.raises(cl.CredalError, match="meaning must be one of 'truth', 'votes'; got 'gold'"):
        clf.predict_credal(X, meaning="gold")  # type: ignore[arg-type]


def test_temperatures_are_those_of_the_predictions_out_of_fold() -> None:
    X, counts = held_out_votes()
    labels = cl.from_votes(counts[:400])
    clf = cl.CredalClassifier().fit(X[:400], labels)
    truth = truth_of(labels, None, np.arange(2))
    for meaning, target in (("truth", truth), ("votes", labels.reference)):
        undone = present(clf.out_of_fold_).temper(1 / clf.temperatures_["truth"])
        probs = undone.probs if meaning == "truth" else present(undone.vertices)[:, 2]
        found = fit_temperature(probs, target)
        assert clf.temperatures_[meaning] == pytest.approx(found, rel=1e-2)  # type: ignore[index]
