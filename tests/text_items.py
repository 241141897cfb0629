"""Short messages with votes, for tests of models of texts."""

import numpy as np

_WORDS = {
    "rude": ["stupid", "idiot", "shut", "moron", "hate", "you", "dumb", "useless", "trash"],
    "fine": ["thanks", "please", "hello", "great", "nice", "lovely", "friend", "welcome", "good"],
}
_OTHERS = [
    "the",
    "a",
    "this",
    "that",
    "bot",
    "it",
    "weather",
    "travel",
    "today",
    "tomorrow",
    "flight",
    "answer",
    "is",
    "was",
]


def messages(num_items: int, *, random_state: int = 0) -> tuple[list[str], np.ndarray]:
    """Texts of five to nine words, and the votes (N, 2) for fine and rude of four people."""
    random = np.random.default_rng(random_state)
    texts, votes = [], []
    for number in range(num_items):
        kind = ("fine", "rude")[number % 2]
        words = [*random.choice(_WORDS[kind], 2), *random.choice(_OTHERS, random.integers(3, 8))]
        random.shuffle(words)
        texts.append(" ".join(words))
        rude = random.binomial(4, 0.85 if kind == "rude" else 0.1)
        votes.append((4 - rude, rude))
    return texts, np.array(votes)
