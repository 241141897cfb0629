"""Column names; see ``credalearn.app.column_names``."""

from credalearn.app.column_names import *  # noqa: F403
