"""Source locations: the line of the user's code that an equation, an effect or an error is from.

Whose code a frame belongs to goes by its file.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from enum import Enum
from functools import lru_cache
from types import CodeType, FrameType
from typing import Any, NamedTuple, TypeVar

import numpy as np
import optree

F = TypeVar("F", bound=Callable[..., Any])


class Source(NamedTuple):
    """A line of the user's code. It is a key wherever nests are joined: a tuple is hashed in C.

    `within` holds the records of the unrolled loops around the line, outermost first. Lowering sets
    it.
    """

    file: str
    line: int
    function: str
    within: tuple[Any, ...] = ()

    def __str__(self) -> str:
        return line_text(self.file, self.line)


def line_text(file: str, line: int) -> str:
    """A line of a file as users read it: ``"solver.py:12"``; of a cell of IPython, ``"In[20]:3"``.

    A cell is a file whose name is a hash of its code. IPython knows the number that it ran under
    last, as its tracebacks say it.
    """
    return f"{_cell(file) or file.replace(chr(92), '/').rsplit('/', 1)[-1]}:{line}"


def _cell(file: str) -> str | None:
    module = sys.modules.get("IPython")
    shell = None if module is None else getattr(module, "get_ipython", _no_shell)()
    named = getattr(getattr(shell, "compile", None), "format_code_name", _no_name)(file)
    return None if named is None else str(named[1])


def _no_shell() -> None:
    """What there is outside of IPython."""


def _no_name(file: str) -> None:
    """What a shell that names no cells says of any file."""


def lines_of(sources: Iterable[Source]) -> str:
    """The lines as users read them, each once: functions of one line have several sources."""
    return ", ".join(dict.fromkeys(map(str, sources)))


class Kind(Enum):
    """Whose code a file holds."""

    USER = "user"
    INSTALLED = "installed"
    """An installed package, as SciPy: its functions may be traced, or jitted by itself."""
    SUPPORT = "support"
    """NumPy and Python's library."""
    OWN = "own"
    """This package, with optree, which calls users' functions for it, and generated functions."""


_USER, _INSTALLED, _OWN = Kind.USER, Kind.INSTALLED, Kind.OWN


def _directory(file: str) -> str:
    return f"{os.path.dirname(file)}{os.sep}"


_PACKAGES = tuple(f"{os.sep}{name}{os.sep}" for name in ("site-packages", "dist-packages"))
_NUMPY, _LIBRARY = _directory(np.__file__), _directory(os.__file__)
_own = [_directory(__file__), _directory(optree.__file__), "<tracegraph: "]


class _Kinds(dict[str, Kind]):
    """The kind of each file of Python code, by its name."""

    def __missing__(self, file: str) -> Kind:
        kind = self[file] = self._find(file)
        return kind

    @staticmethod
    def _find(file: str) -> Kind:
        if file.startswith(tuple(_own)):
            return Kind.OWN
        if file.startswith(_NUMPY):
            return Kind.SUPPORT
        if any(name in file for name in _PACKAGES):
            return Kind.INSTALLED  # Python's library has such a folder: ask for packages first
        return Kind.SUPPORT if file.startswith((_LIBRARY, "<frozen ")) else Kind.USER


kinds = _Kinds()


def add_own(file: str) -> None:
    """Count the directory of a file, and all below it, as this package's."""
    _own.append(_directory(file))
    kinds.clear()


_entries: set[CodeType] = set()


def calls_traced(function: F) -> F:
    """Mark the function that calls what is traced: equations come from no frame outside of it."""
    _entries.add(function.__code__)
    return function


def user_source(own: int = 1) -> Source | None:
    """The line of the user's code that runs: of the innermost frame outside installed packages.

    If all that is traced belongs to installed packages, it is the innermost frame of one. The
    first `own` frames are known to be this package's.
    """
    frame: FrameType | None = sys._getframe(own)
    installed: FrameType | None = None
    while frame is not None:
        code = frame.f_code
        kind = kinds[code.co_filename]
        if kind is _OWN:  # first: most frames are
            if installed is not None and code in _entries:
                break
        elif kind is _USER:
            return _source(code.co_filename, frame.f_lineno, code.co_name)
        elif kind is _INSTALLED and installed is None:
            installed = frame
        frame = frame.f_back
    if installed is None:
        return None
    code = installed.f_code
    return _source(code.co_filename, installed.f_lineno, code.co_name)


def user_frame() -> tuple[FrameType | None, bool]:
    """The innermost frame of the user's own code, within what is traced.

    And whether it calls an installed package.
    """
    frame: FrameType | None = sys._getframe(1)
    calls_package = False
    while frame is not None:
        kind = kinds[frame.f_code.co_filename]
        if kind is _USER:
            return frame, calls_package
        calls_package |= kind is _INSTALLED
        if kind is _OWN and frame.f_code in _entries:
            break
        frame = frame.f_back
    return None, calls_package


def is_traced() -> bool:
    """Whether a traced function is among the callers."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code not in _entries:
        frame = frame.f_back
    return frame is not None


_source = lru_cache(maxsize=4096)(Source)
