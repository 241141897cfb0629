"""Items: what a model sees of each, what they are called, and how they are known again."""
