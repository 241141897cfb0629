"""See ``credalearn.app.annotations.table``."""

from credalearn.app.annotations.table import three_items as three_items
