"""Every setting by name, the paper's and ours, and shell-style patterns of names."""

from collections.abc import Sequence
from fnmatch import fnmatchcase

from credalearn.errors import CredalError
from credalearn_experiments.settings import Setting
from credalearn_experiments.settings.paper import SETTINGS
from credalearn_experiments.settings.votes import FAMILIES, VOTE_SETTINGS

ALL_SETTINGS: dict[str, Setting] = SETTINGS | VOTE_SETTINGS
_FAMILY = {setting.name: name for name, each in FAMILIES.items() for setting in each.settings}


def family_of(name: str) -> str | None:
    """The family of a setting, a key of ``FAMILIES``; None if it has none."""
    return _FAMILY.get(name)


def settings_named(names: Sequence[str]) -> list[Setting]:
    """The settings of these names or patterns, each once."""
    return [ALL_SETTINGS[name] for name in spelled_out(names, list(ALL_SETTINGS))]


def spelled_out(names: Sequence[str], known: Sequence[str], what: str = "setting") -> list[str]:
    """The known names that match these names or patterns, each once."""
    found: dict[str, None] = {}
    for name in names:
        matches = [each for each in known if fnmatchcase(each, name)]
        if not matches:
            raise CredalError(
                f"no {what} matches {name!r}. To fix: see `credalearn-experiments list '*'`."
            )
        found |= dict.fromkeys(matches)
    return list(found)
