"""Short messages with votes, for tests of models of texts."""

import numpy as np
import polars as pl

_FINE = ("thanks please hello great", "nice lovely friend welcome good")
_RUDE = ("stupid idiot shut moron hate", "you dumb useless trash")
_OTHERS = ("the a this that bot it weather", "travel today tomorrow flight answer is was")


def messages(num_items: int, *, random_state: int = 0) -> tuple[list[str], np.ndarray]:
    """Texts of five to nine words, and the votes (N, 2) for fine and rude of four people."""
    random = np.random.default_rng(random_state)
    fine, rude, others = (" ".join(words).split() for words in (_FINE, _RUDE, _OTHERS))
    texts, votes = [], []
    for number in range(num_items):
        own = rude if number % 2 else fine
        words = [*random.choice(own, 2), *random.choice(others, random.integers(3, 8))]
        random.shuffle(words)
        texts.append(" ".join(words))
        against = random.binomial(4, 0.85 if number % 2 else 0.1)
        votes.append((4 - against, against))
    return texts, np.array(votes)


def tone(number: int, rude: int) -> str:
    """What the person of this number says, the first of whom say rude."""
    return "fine" if number >= rude else "rude"


def message_votes(num_items: int) -> pl.DataFrame:
    """One row per vote on the messages m0, m1, …: item, annotator, text and label."""
    texts, votes = messages(num_items)
    rows = [
        {"item": f"m{row}", "annotator": who, "text": text, "label": tone(who, votes[row, 1])}
        for row, text in enumerate(texts)
        for who in range(4)
    ]
    return pl.DataFrame(rows)
