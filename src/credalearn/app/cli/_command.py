"""A Typer command made from a function and the option dataclasses that it takes."""

import inspect
import io
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import Field, fields, is_dataclass
from functools import wraps
from importlib import import_module
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperCommand

from credalearn._formats import check_unicode, visible
from credalearn.errors import CredalError, TrainingError

# What a command prints: lines for people, and facts for programs, by name.
Output = Iterable[str | dict[str, Any]] | None
Json = Annotated[bool, typer.Option("--json", help="Print facts for programs instead of text.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]


def command(function: Callable[..., Output]) -> Callable[..., None]:
    """A function for Typer, with an option per field of the dataclasses that ``function`` takes."""
    hints = get_type_hints(function, include_extras=True)
    for name, kind in hints.items():
        if get_origin(kind) is Annotated and isinstance(kind.__metadata__[0], str):
            module, _, stated_as = kind.__metadata__[0].rpartition(".")
            hints[name] = getattr(import_module(f"credalearn.app.{module}"), stated_as)
    given_options: dict[str, Any] = {
        name: kind for name, kind in hints.items() if is_dataclass(kind)
    }
    own = [
        each.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=hints[name])
        for name, each in inspect.signature(function).parameters.items()
        if name not in given_options
    ]
    stated: dict[str, inspect.Parameter] = {}
    for kind in given_options.values():
        for each in fields(kind):
            if "help" in each.metadata and each.name not in stated:
                stated[each.name] = _parameter(each, get_type_hints(kind)[each.name])

    @wraps(function)
    @one_line_when_stopped()
    def run(*, json: bool, quiet: bool, **given: Any) -> None:
        chosen = {name: given.pop(name) for name in stated}
        facts: dict[str, Any] = {}
        try:
            for name, kind in given_options.items():
                asked = {each.name: chosen.get(each.name) for each in fields(kind)}
                said = {key: each for key, each in asked.items() if each not in (None, [])}
                given[name] = kind(
                    **{k: tuple(x) if type(x) is list else x for k, x in said.items()}
                )
            for part in function(**given) or ():
                if isinstance(part, dict):
                    facts |= part
                elif not (json or quiet):
                    print(visible(part if part.startswith("Wrote ") else _as_flags(part, stated)))
        except CredalError as error:
            raise CredalError(_as_flags(str(error), stated)) from error
        if json:
            import msgspec  # training and measuring work without it

            # Numbers of NumPy as numbers, paths as text.
            plain = lambda value: value.item() if hasattr(value, "item") else str(value)  # noqa: E731
            print(msgspec.json.encode(facts, enc_hook=plain).decode())

    only = inspect.Parameter.KEYWORD_ONLY
    flags = [
        inspect.Parameter(name, only, default=False, annotation=kind)
        for name, kind in (("json", Json), ("quiet", Quiet))
    ]
    parameters = [*own, *stated.values(), *flags]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    return run


def _as_flags(text: str, names: Iterable[str]) -> str:
    """Options as the command has them: --random-state 0 for random_state=0, --again for again=True.

    A message names them as Python does, since both have the same messages.
    """
    name = f"({'|'.join(names)})"
    value = r"(?:(True|False)\b|'(-?)([^']*)'|(?=\d)|(?=[\s.,;:)]|$))"
    # Not in a path, a URL, a quotation or a command to be run.
    option = rf"^{name}(?= must )|(?<=[\s(]){name}={value}"
    left = r"(?<!\w)'[^']*'(?!\w)|(?<!\w)\"[^\"]*\"(?!\w)|\bcredalearn [^;)]*"
    spelled = re.compile(f"{option}|{left}")

    def flag(found: re.Match[str]) -> str:
        rule, named, switch, minus, text, *_ = found.groups()
        if rule is None and named is None:
            return found[0]
        start = f"--{'no-' * (switch == 'False')}{(rule or named).replace('_', '-')}"
        if text is not None:
            text = text if re.fullmatch(r"[\w./:-]+", text) else f"'{text}'"
            return f"{start}=-{text}" if minus else f"{start} {text}"
        return f"{start} " if found.string[found.end() :][:1].isdigit() else start

    return spelled.sub(flag, text)


def _parameter(option: Field[Any], kind: Any) -> inspect.Parameter:
    metadata = option.metadata
    name = f"--{option.name.replace('_', '-')}"
    flags = metadata["flags"] or (f"{name}/--no-{name[2:]}" if option.default is True else name,)
    kind, metavar = _command_type(kind)
    quiet = option.default is None or option.default is False or option.default == ()
    shown = metadata["show_default"] or not quiet
    of_kind = {"parser": _number, "metavar": "<float>"} if kind is float else {"metavar": metavar}
    info = typer.Option(*flags, help=metadata["help"], show_default=shown, **of_kind)
    default = None if option.default == () else option.default
    return inspect.Parameter(
        option.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=default,
        annotation=Annotated[kind | None if default is None else kind, info],
    )


def _number(text: str) -> float:
    """A number; the message about a decimal comma says what to write."""
    try:
        return float(text)
    except ValueError:
        fix = f" To fix: write {text.replace(',', '.')}." if "," in text else ""
        raise typer.BadParameter(f"{text!r} is not a number.{fix}") from None


def _command_type(kind: Any) -> tuple[Any, str | None]:
    """The type that Typer parses, and the choices that the help shows."""
    parts = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
    parts = tuple(part for part in parts if part is not NoneType)
    kind = Path if Path in parts else parts[0]
    if get_origin(kind) is Literal:
        return str, f"[{'|'.join(get_args(kind))}]"
    if get_origin(kind) in (tuple, list):
        kind, metavar = _command_type(get_args(kind)[0])
        return list[kind], metavar
    return kind, None


class LazyCommand(TyperCommand):
    """A command whose options are imported when it is called."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any
    ) -> Any:
        """The context of the real command."""
        with one_line_when_stopped():
            from credalearn.app.cli.commands import COMMANDS

            app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
            app.command(self.name, help=self.help)(command(COMMANDS[str(self.name)]))
            return typer.main.get_command(app).make_context(info_name, args, parent, **extra)


@contextmanager
def one_line_when_stopped() -> Iterator[None]:
    """After Ctrl-C, end with one line and exit code 130; the exception may say what is left."""
    try:
        yield
    except KeyboardInterrupt as stop:
        print(f"credalearn: stopped{'; ' if str(stop) else ''}{stop}", file=sys.stderr)
        raise typer.Exit(130) from None


@contextmanager
def one_message(name: str) -> Iterator[None]:
    """What a user can fix ends the command ``name`` with one message and exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a letter that it cannot show becomes \u00e9
            stream.reconfigure(errors="backslashreplace")
    try:
        for argument in sys.argv[1:]:
            check_unicode(argument)
        yield
    except (CredalError, TrainingError, OSError) as error:
        if os.environ.get("RANK", "0") == "0":  # torchrun: the first process alone reports it
            print(visible(f"{name}: {error}"), file=sys.stderr)
        sys.exit(2)
