"""Settings: everything of a run but its method and seed, by name."""

from credalearn_experiments.settings.setting import Annotators, Setting, Smoothing, Teacher, Votes

__all__ = ["Annotators", "Setting", "Smoothing", "Teacher", "Votes"]
