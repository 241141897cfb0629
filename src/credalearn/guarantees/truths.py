"""What predictions are right or wrong against, in words."""

from typing import Literal

Truth = Literal["majority", "gold", "a random annotator", "bounds", "probabilities"]

TRUTHS: dict[Truth, str] = {
    "majority": "the class with most votes",
    "gold": "the gold labels",
    "a random annotator": "a random annotator",
    "bounds": "the class with the largest stated bound",
    "probabilities": "the class with the largest stated probability",
}

# What an item must have to be right or wrong against it.
HAVING: dict[Truth, str] = {
    "majority": "a single most-voted class",
    "gold": "a gold label",
    "a random annotator": "a vote",
    "bounds": "a largest bound",
    "probabilities": "a largest probability",
}

# Why others are left out.
LACKING: dict[Truth, str] = {
    "majority": "their votes tie, so they have no truth",
    "gold": "they have no gold label",
    "a random annotator": "nobody voted on them",
    "bounds": "their largest bounds tie, so they have no truth",
    "probabilities": "their largest probabilities tie, so they have no truth",
}
