"""See ``credalearn.app.readers``."""

from credalearn.app.readers._tidy import clean_label as plain_number

__all__ = ["plain_number"]
