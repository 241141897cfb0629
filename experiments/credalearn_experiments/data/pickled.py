"""CIFAR's python files, read without running anything that they say.

The files are written by Python's serializer, whose own reader calls whatever a file names. Here
its instructions are only listed (``pickletools``), and a few of them are interpreted: those that
build dicts, lists, tuples, numbers, strings and numpy arrays of plain numbers. All else is
refused, so that even a file that nobody verified can do no harm.
"""

import pickletools
import re
from typing import Any

import numpy as np

from credalearn.errors import CredalError

_ARRAY = {
    ("numpy.core.multiarray", "_reconstruct"),  # numpy 1
    ("numpy._core.multiarray", "_reconstruct"),  # numpy 2
}
_BYTES = {("_codecs", "encode")}  # how protocol 2 writes bytes
_NAMES = _ARRAY | _BYTES | {("numpy", "ndarray"), ("numpy", "dtype")}

_VALUES = {  # instructions that push the value they carry
    *["BININT", "BININT1", "BININT2", "INT", "LONG", "LONG1", "LONG4", "BINFLOAT", "FLOAT"],
    *["BINUNICODE", "SHORT_BINUNICODE", "UNICODE", "BINBYTES", "SHORT_BINBYTES", "BINBYTES8"],
}
_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_FRAMING = {"PROTO", "FRAME"}
_TUPLES = {"EMPTY_TUPLE": 0, "TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
_STRINGS = {"STRING", "BINSTRING", "SHORT_BINSTRING"}  # Python 2's str, which are bytes


class _Mark:
    """Where a list of items begins on the stack."""


class _Building:
    """An array or a dtype of which only the kind is known yet."""

    def __init__(self, dtype: np.dtype[Any] | None = None) -> None:
        self.dtype = dtype
        self.array: np.ndarray[Any, Any] | None = None


def read_pickled(content: bytes) -> Any:
    r"""The dict, list or value in a file, with numpy arrays; nothing in it is run.

    Raises:
        CredalError: If the file asks for anything but plain values and numpy arrays of numbers.
        Exception: Of many kinds, if the bytes are damaged.

    Example:
        The second file would list a folder, were it read by others.

        >>> read_pickled(b"(dp0\nS'labels'\np1\n(lp2\nI3\naI5\nas.")
        {b'labels': [3, 5]}
        >>> read_pickled(b"cos\nlistdir\n(S'.'\ntR.")
        Traceback (most recent call last):
        credalearn.errors.CredalError: such a file may hold plain values and numpy arrays only;
        this one names os.listdir and may be hostile
    """
    stack: list[Any] = []
    memo: dict[int, Any] = {}
    for opcode, argument, _ in pickletools.genops(content):
        if opcode.name == "STOP":
            break
        _step(opcode.name, argument, stack, memo)
    (result,) = stack
    return _finished(result)


def _step(name: str, argument: Any, stack: list[Any], memo: dict[int, Any]) -> None:
    """Do one instruction."""
    if name in _VALUES:
        stack.append(argument)
    elif name in _STRINGS:
        stack.append(argument.encode("latin-1"))  # as listed, one character a byte
    elif name in _CONSTANTS:
        stack.append(_CONSTANTS[name])
    elif name in ("BINPUT", "LONG_BINPUT", "PUT"):
        memo[argument] = stack[-1]
    elif name == "MEMOIZE":
        memo[len(memo)] = stack[-1]
    elif name in ("BINGET", "LONG_BINGET", "GET"):
        stack.append(memo[argument])
    elif name in ("GLOBAL", "STACK_GLOBAL"):
        stack.append(_named(argument, stack))
    elif name == "REDUCE":
        arguments = stack.pop()
        stack[-1] = _called(stack[-1], arguments)
    elif name == "BUILD":
        _build(stack.pop(-2), stack.pop(), stack)
    elif name not in _FRAMING:
        _container(name, stack)


def _container(name: str, stack: list[Any]) -> None:
    """Begin, fill or end a dict, a list or a tuple."""
    if name == "MARK":
        stack.append(_Mark())
    elif name in ("EMPTY_DICT", "EMPTY_LIST"):
        stack.append({} if name == "EMPTY_DICT" else [])
    elif name in ("DICT", "SETITEMS", "LIST", "APPENDS", "TUPLE"):
        items = _since_mark(stack)
        if name == "TUPLE":
            stack.append(tuple(items))
        else:
            if name in ("DICT", "LIST"):
                stack.append({} if name == "DICT" else [])
            _fill(stack[-1], items)
    elif name == "SETITEM":
        items = [stack.pop(-2), stack.pop()]
        _fill(stack[-1], items)
    elif name == "APPEND":
        item = stack.pop()
        _fill(stack[-1], [item])
    elif name in _TUPLES:
        count = _TUPLES[name]
        items = stack[len(stack) - count :]
        del stack[len(stack) - count :]
        stack.append(tuple(items))
    else:
        raise _refused(f"has the instruction {name}")


def _since_mark(stack: list[Any]) -> list[Any]:
    items: list[Any] = []
    while not isinstance(stack[-1], _Mark):
        items.append(stack.pop())
    stack.pop()
    return items[::-1]


def _fill(container: Any, items: list[Any]) -> None:
    if isinstance(container, dict):
        container.update(zip(items[::2], items[1::2], strict=True))
    elif isinstance(container, list):
        container.extend(items)
    else:
        raise _refused(f"adds items to a {type(container).__name__}")


def _named(argument: str | None, stack: list[Any]) -> tuple[str, str]:
    """A name that stands for a function, kept as a name: nothing is imported."""
    if argument is None:  # STACK_GLOBAL: module and name were pushed before
        attribute, module = stack.pop(), stack.pop()
    else:
        module, attribute = argument.split(" ", 1)
    if (module, attribute) not in _NAMES:
        raise _refused(f"names {module}.{attribute}")
    return module, attribute


def _called(function: Any, arguments: Any) -> Any:
    """What the few admitted calls give, without making them."""
    if function in _BYTES:
        text, encoding = arguments
        if encoding not in ("latin1", b"latin1"):
            raise _refused(f"encodes bytes by {encoding!r}")
        return text.encode("latin-1")
    if function in _ARRAY:
        return _Building()
    if function == ("numpy", "dtype"):
        code = arguments[0].decode() if isinstance(arguments[0], bytes) else arguments[0]
        if not isinstance(code, str) or not re.fullmatch("[biuf][1248]", code):
            raise _refused(f"holds an array of {code!r}, not of numbers")
        return _Building(np.dtype(code))
    raise _refused(f"calls {function!r}")


def _build(building: Any, state: Any, stack: list[Any]) -> None:
    """Give an array its shape and bytes, a dtype its byte order."""
    if not isinstance(building, _Building):
        raise _refused(f"sets the state of a {type(building).__name__}")
    if building.dtype is not None:
        order = state[1].decode() if isinstance(state[1], bytes) else state[1]
        if order in ("<", ">"):
            building.dtype = building.dtype.newbyteorder("<" if order == "<" else ">")
    else:
        _, shape, dtype, by_column, content = state
        flat = np.frombuffer(content, dtype.dtype)
        building.array = flat.reshape(shape, order="F" if by_column else "C")
    stack.append(building)


def _finished(value: Any) -> Any:
    """The same with arrays in the place of what they were built in."""
    if isinstance(value, dict):
        return {_finished(key): _finished(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_finished(each) for each in value]
    return value.array if isinstance(value, _Building) else value


def _refused(what: str) -> CredalError:
    return CredalError(
        f"such a file may hold plain values and numpy arrays only; this one {what} "
        "and may be hostile"
    )
