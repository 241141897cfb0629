"""What the default learner costs next to ``LogisticRegressionCV`` on the same data.

Each fit runs in a process of its own, with the threads that it takes by itself. CPU seconds are
those of all threads. The limits are for two cores without other work.
"""

import subprocess
import sys

from core import Measurement

_SETS = {
    "7,000 texts × 100,000 words, K=2": (
        60.0,
        """
from scipy.sparse import csr_array
from sklearn.feature_extraction.text import TfidfTransformer
N, D, K, words = 7_000, 100_000, 2, 300
share = 1 / np.arange(10, D + 10)  # the frequency of a word falls with its rank
columns = rng.choice(D, size=(N, words), p=share / share.sum())
counts = csr_array((np.ones(N * words), columns.ravel(), np.arange(N + 1) * words), shape=(N, D))
X = TfidfTransformer().fit_transform(counts)
logits = 4 * (X @ rng.normal(size=(D, K)))
""",
    ),
    "100,000 × 512 features, K=10": (
        180.0,
        """
N, D, K = 100_000, 512, 10
X = rng.normal(size=(N, D)) @ rng.normal(size=(D, D)) / 20
logits = X @ rng.normal(size=(D, K)) / 20
""",
    ),
}

_CODE = """
import sys, time, warnings
import numpy as np
rng = np.random.default_rng(0)
{data}
shares = np.exp(logits - logits.max(1, keepdims=True))
votes = rng.multinomial(5, shares / shares.sum(1, keepdims=True))
if sys.argv[1] == "ours":
    import credalearn as cl
    clf, y = cl.CredalClassifier(), cl.from_votes(votes)
else:
    from sklearn.linear_model import LogisticRegressionCV
    warnings.simplefilter("ignore", FutureWarning)  # about defaults of its later versions
    clf, y = LogisticRegressionCV(Cs=10, cv=4, max_iter=1000), votes.argmax(1)
started, cpu_started = time.perf_counter(), time.process_time()
clf.fit(X, y)
print(time.perf_counter() - started, time.process_time() - cpu_started)
"""


def learner_cost() -> list[Measurement]:
    """Selection and fit of both."""
    found = []
    for name, (limit, data) in _SETS.items():
        for who, text in (
            ("ours", f"default learner, {name}"),
            ("theirs", "… LogisticRegressionCV"),
        ):
            command = [sys.executable, "-c", _CODE.format(data=data), who]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            seconds, cpu_seconds = map(float, done.stdout.split())
            found.append(Measurement(text, seconds, "s", limit if who == "ours" else None))
            found.append(Measurement("… of all threads", cpu_seconds, "CPU s"))
    return found


LEARNER_COST = (learner_cost,)
