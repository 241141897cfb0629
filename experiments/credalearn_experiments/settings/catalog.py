"""Every setting by name, the paper's and ours, and names with shell-style patterns."""

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from credalearn._checks import near
from credalearn.errors import CredalError
from credalearn_experiments.settings import Setting
from credalearn_experiments.settings.paper import SETTINGS
from credalearn_experiments.settings.votes import FAMILIES, VOTE_SETTINGS

ALL_SETTINGS: dict[str, Setting] = SETTINGS | VOTE_SETTINGS
# Of those alone that the families have: a plugin's setting stands alone, whatever its name.
_FAMILY = {setting.name: name for name, each in FAMILIES.items() for setting in each.settings}


def family_of(name: str) -> str | None:
    """The family that a setting belongs to, a key of ``FAMILIES``; None where it stands alone.

    Example:
        >>> family_of("cifar10h-votes-3-idm"), family_of("cifar10h")
        ('cifar10h-votes', None)
    """
    return _FAMILY.get(name)


def by_family(names: Iterable[str]) -> list[str]:
    """Names for a message: alone in order, then one for all of a family, which has dozens.

    Example:
        >>> by_family(["cifar10h-votes-3-idm", "cifar10h-votes-1-idm", "cifar10h"])
        ['cifar10h', 'cifar10h-votes-K-RULE']
    """
    known = list(ALL_SETTINGS)
    ordered = sorted(names, key=lambda name: known.index(name) if name in known else len(known))
    families = {name: family_of(name) for name in ordered}
    alone = [name for name, family in families.items() if family is None]
    return [*alone, *dict.fromkeys(f"{each}-K-RULE" for each in families.values() if each)]


def setting_named(name: str) -> Setting:
    """The setting of this name.

    Raises:
        CredalError: If there is none; the message names those that are close.

    Example:
        >>> setting_named("cifar10h").task
        'cifar10h'
    """
    if name not in ALL_SETTINGS:
        raise CredalError(f"setting {name!r} is unknown{_close_to(name, ALL_SETTINGS)}")
    return ALL_SETTINGS[name]


def epochs_of(name: str) -> int | None:
    """How many epochs the setting of this name asks for; None where it is not known.

    Example:
        >>> epochs_of("cifar10h"), epochs_of("mine")
        (150, None)
    """
    known = ALL_SETTINGS.get(name)
    return None if known is None else known.recipe.epochs


def settings_named(names: Sequence[str]) -> list[Setting]:
    """The settings of these names, each once; ``*``, ``?`` and ``[…]`` stand for several.

    Raises:
        CredalError: If there is no setting of a name, or none fits a pattern.

    Example:
        >>> [setting.name for setting in settings_named(["cifar10h-votes-3-*"])][:2]
        ['cifar10h-votes-3-precise', 'cifar10h-votes-3-relax']
    """
    return [setting_named(name) for name in spelled_out(names, list(ALL_SETTINGS))]


def spelled_out(names: Sequence[str], known: Sequence[str]) -> list[str]:
    """Patterns replaced by the known names that fit them; plain names stay, each name once.

    Raises:
        CredalError: If nothing fits a pattern.

    Example:
        >>> spelled_out(["b", "a*"], ["a1", "a2", "c"])
        ['b', 'a1', 'a2']
    """
    found: dict[str, None] = {}
    for name in names:
        fits = [each for each in known if fnmatchcase(each, name)] if set(name) & set("*?[") else []
        if not fits and set(name) & set("*?["):
            raise CredalError(f"no setting fits {name!r}{_close_to(name, known)}")
        found |= dict.fromkeys(fits or [name])
    return list(found)


def _close_to(name: str, known: Iterable[str]) -> str:
    """The end of a message: up to five known names that are close, and where all stand."""
    start = name.lower().rstrip("*")
    close = near(name, known) or [each for each in known if each.startswith(start)]
    told = f"; close are {', '.join(close[:5])}" if close else ""
    return f"{told}. To fix: see `credalearn-experiments list --all`."
