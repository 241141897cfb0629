"""A panic of polars is told by our message alone."""

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from polars.exceptions import PanicException

_ALONE = Lock()  # the error stream is the whole process's
_LATE = 0.05  # seconds in which other threads of a failed read may print too


@contextmanager
def quiet_panics() -> Iterator[None]:
    """Hold back what is printed to the error stream; if the block panics, drop it.

    polars writes each panic, with its stack, to the file descriptor 2 before Python hears of it.
    What is printed without a panic follows at the end of the block.

    Example:
        >>> with quiet_panics():
        ...     pass
    """
    with _ALONE, tempfile.TemporaryFile() as held:
        try:
            stream = os.dup(2)
        except OSError:  # a process without an error stream
            yield
            return
        os.dup2(held.fileno(), 2)
        try:
            yield
        except PanicException:
            time.sleep(_LATE)
            held.truncate(0)
            raise
        finally:
            os.dup2(stream, 2)
            held.seek(0)
            os.write(stream, held.read())
            os.close(stream)
