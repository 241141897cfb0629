"""Kinds of annotations; see ``credalearn.app.annotations.table``."""

from credalearn.app.annotations.table import Kind as Kind
