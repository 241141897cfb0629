"""Every setting by name, the paper's and ours, and shell-style patterns of names."""

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from credalearn._checks import nearest
from credalearn.errors import CredalError
from credalearn_experiments.settings import Setting
from credalearn_experiments.settings.paper import SETTINGS
from credalearn_experiments.settings.votes import FAMILIES, VOTE_SETTINGS

ALL_SETTINGS: dict[str, Setting] = SETTINGS | VOTE_SETTINGS
_FAMILY = {setting.name: name for name, each in FAMILIES.items() for setting in each.settings}


def family_of(name: str) -> str | None:
    """The family of a setting, a key of ``FAMILIES``; None if it has none."""
    return _FAMILY.get(name)


def by_family(names: Iterable[str]) -> list[str]:
    """Names in the order of the catalog, with one entry for all settings of a family."""
    known = list(ALL_SETTINGS)
    ordered = sorted(names, key=lambda name: known.index(name) if name in known else len(known))
    alone = [name for name in ordered if family_of(name) is None]
    families = [family_of(name) for name in ordered]
    return [*alone, *dict.fromkeys(f"{family}-K-RULE" for family in families if family)]


def settings_named(names: Sequence[str]) -> list[Setting]:
    """The settings of these names or patterns, each once."""
    found = spelled_out(names, list(ALL_SETTINGS))
    for name in found:
        if name not in ALL_SETTINGS:
            raise CredalError(f"setting {name!r} is unknown{_suggestion(name, ALL_SETTINGS)}")
    return [ALL_SETTINGS[name] for name in found]


def spelled_out(names: Sequence[str], known: Sequence[str]) -> list[str]:
    """Names with patterns replaced by the known names that match them, each once."""
    found: dict[str, None] = {}
    for name in names:
        pattern = bool(set(name) & set("*?["))
        matches = [each for each in known if fnmatchcase(each, name)] if pattern else [name]
        if not matches:
            raise CredalError(f"no setting matches {name!r}{_suggestion(name, known)}")
        found |= dict.fromkeys(matches)
    return list(found)


def _suggestion(name: str, known: Iterable[str]) -> str:
    """The end of a message: the most similar name, and where to see all."""
    similar = nearest(name, known)
    shown = f"; the most similar name is {similar}" if similar else ""
    return f"{shown}. To fix: see `credalearn-experiments list '*'`."
