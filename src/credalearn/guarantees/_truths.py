"""What predictions are compared with to call them right or wrong, in words."""

from typing import Literal

Truth = Literal["majority", "gold", "dawid-skene", "a random annotator", "bounds", "probabilities"]

TRUTHS: dict[Truth, str] = {
    "majority": "the class with the most votes",
    "gold": "the gold labels",
    "dawid-skene": "the most probable class by Dawid and Skene's model of the annotators",
    "a random annotator": "a random annotator",
    "bounds": "the class with the largest stated bound",
    "probabilities": "the class with the largest stated probability",
}

# What an item must have to be right or wrong.
HAVING: dict[Truth, str] = {
    "majority": "a single most-voted class",
    "gold": "a gold label",
    "dawid-skene": "a vote",
    "a random annotator": "a vote",
    "bounds": "a single largest bound",
    "probabilities": "a single largest probability",
}

# Why the other items are left out.
LACKING: dict[Truth, str] = {
    "majority": "their votes are tied",
    "gold": "they have no gold label",
    "dawid-skene": "they have no votes",
    "a random annotator": "they have no votes",
    "bounds": "their largest bounds are tied",
    "probabilities": "their largest probabilities are tied",
}
