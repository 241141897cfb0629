"""A demonstration on real data that ships with the package: radiologists who disagree."""

__all__: list[str] = []
