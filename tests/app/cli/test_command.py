"""Commands made from option dataclasses: one statement serves Python, the command and its help."""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
import typer
from typer.testing import CliRunner

from credalearn._options import check_options, option, same_option
from credalearn.app.cli._command import _naming_options, command
from credalearn.errors import CredalError


@dataclass(frozen=True, slots=True, kw_only=True)
class Baking:
    """Options of every type."""

    flour: Literal["rye", "wheat"] = option("rye", "Kind of flour.")
    salt: float = option(0.02, "Share of salt.", least=0, below=1)
    minutes: int = option(0, "Minutes in the oven.", least=0)
    seeds: tuple[str, ...] = option((), "Seeds on top; may be repeated.")
    order: tuple[str, ...] | None = option(None, "Order of the loaves.", show_default="found")
    recipe: Path | None = option(None, "File of the recipe.")
    dark: bool = option(False, "Bake longer.")
    rest: bool = option(True, "Let the dough rest.")
    form: str | None = option(None, "Baking form.", flags=("--format",))

    def __post_init__(self) -> None:
        check_options(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Selling:
    """Shares an option with the other dataclass."""

    salt: float = same_option(Baking, "salt")
    price: float = option(3.5, "Price of a loaf.", above=0)


seen: list[tuple[Path, Path, Baking, Selling]] = []
app = typer.Typer(pretty_exceptions_enable=False)
Output = Annotated[Path, typer.Option("--output", "-o", help="Where the bread goes.")]


@app.command()
@command
def bake(oven: Path, baking: Baking, selling: Selling, output: Output) -> Iterator[str]:
    """Bake bread."""
    seen.append((oven, output, baking, selling))
    yield "Baked."
    yield "Next: eat."


def test_every_field_is_an_option_with_its_help_and_default() -> None:
    shown = CliRunner().invoke(app, ["--help"], terminal_width=200).output
    for each in (*fields(Baking), *fields(Selling)):
        flag = "--format" if each.name == "form" else f"--{each.name.replace('_', '-')}"
        assert flag in shown
        assert each.metadata["help"][:15] in shown
    for default in ("rye|wheat", "default: 0.02", "default: 0]", "(found)", "--no-rest"):
        assert default in shown
    assert "--no-dark" not in shown


def test_command_and_python_make_the_same_options() -> None:
    given = "oven -o shelf --flour wheat --salt 0.5 --seeds poppy --seeds sesame --dark --no-rest"
    result = CliRunner().invoke(app, [*given.split(), "--recipe", "r.txt", "--format", "long"])
    assert result.exit_code == 0, result.output
    assert result.output == "Baked.\nNext: eat.\n"
    wanted = Baking(
        flour="wheat",
        salt=0.5,
        seeds=("poppy", "sesame"),
        dark=True,
        rest=False,
        recipe=Path("r.txt"),
        form="long",
    )
    assert seen[-1] == (Path("oven"), Path("shelf"), wanted, Selling(salt=0.5))
    CliRunner().invoke(app, ["oven", "-o", "shelf"])
    assert seen[-1] == (Path("oven"), Path("shelf"), Baking(), Selling())


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("salt", 1.5, "salt must be 0 or more and below 1"),
        ("flour", "oats", "must be one of 'rye'"),
    ],
)
def test_an_error_names_the_option_as_it_was_passed(name: str, value: Any, message: str) -> None:
    with pytest.raises(CredalError, match=message) as in_python:
        Baking(**{name: value})
    result = CliRunner().invoke(app, ["oven", "-o", "shelf", f"--{name}", str(value)])
    assert str(result.exception) == str(in_python.value).replace(name, f"--{name}", 1)


def test_errors_spell_keywords_as_options() -> None:
    spelled = pytest.raises(CredalError, match=r"^--my-salt 1, or --my-salt=2, not your_my_salt=3$")
    with spelled, _naming_options(["my_salt"]):
        raise CredalError("my_salt=1, or --my-salt=2, not your_my_salt=3")
