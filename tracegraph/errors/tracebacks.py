"""Tracebacks: users see their own frames, not those of this package.

The public entry points hide them from what is raised through them. The environment variable
`TRACEGRAPH_TRACEBACK=full` shows them all.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from types import TracebackType
from typing import ParamSpec, TypeVar

from tracegraph.errors.names_elsewhere import keyword_advice
from tracegraph.errors.programs import VerificationError
from tracegraph.user_source import Kind, Source, is_traced, kinds, user_source

P = ParamSpec("P")
R = TypeVar("R")

_FAULTS = (VerificationError, AssertionError, KeyError, NameError, NotImplementedError)
"""Only a bug of this package raises these. Their tracebacks keep all frames, for the report."""

_WITHOUT_LINE = (TypeError, ValueError, LookupError, ArithmeticError)


def entry_point(function: Callable[P, R]) -> Callable[P, R]:
    """A public function that hides the frames of this package, its own included.

    What is called often calls `hide_frames` itself, which saves a call.
    """

    @wraps(function)
    def entered(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except BaseException as error:
            hide_frames(error)
            if type(error) is TypeError:
                _add_advice(function.__name__, error)
            raise

    return entered


def _add_advice(function: str, error: TypeError) -> None:
    """Say what is passed here for a keyword argument that another library has."""
    advice = keyword_advice(function, error)
    if advice is not None and str(error).startswith(f"{function}("):
        error.args = (f"{error}; {advice}",)


def hide_frames(error: BaseException) -> None:
    """Hide frames from an error that is being handled, and from its causes.

    To be followed by a `raise` without arguments, which does not add the frame it is in once more.
    """
    if os.environ.get("TRACEGRAPH_TRACEBACK") == "full":
        return
    seen: set[int] = set()
    rest: list[BaseException | None] = [error]
    while rest:
        shown = rest.pop()
        if shown is None or id(shown) in seen:
            continue
        seen.add(id(shown))
        frames, ends_inside = _visible(shown.__traceback__)
        if ends_inside and isinstance(shown, _FAULTS):
            continue
        if ends_inside and isinstance(shown, _WITHOUT_LINE):
            _add_line(shown, frames)
        shown.__traceback__ = _linked(frames)
        rest += (shown.__cause__, shown.__context__)
        if isinstance(shown, BaseExceptionGroup):
            rest += shown.exceptions


def _visible(traceback: TracebackType | None) -> tuple[list[TracebackType], bool]:
    """The steps that are not of this package, nor of libraries that it calls.

    And whether the last step is such.
    """
    kept: list[TracebackType] = []
    hidden = False
    while traceback is not None:
        kind = kinds[traceback.tb_frame.f_code.co_filename]
        if kind is not Kind.SUPPORT:  # NumPy and Python's library belong to whose code calls them
            hidden = kind is Kind.OWN
        if not hidden:
            kept.append(traceback)
        traceback = traceback.tb_next
    return kept, hidden


def _linked(steps: list[TracebackType]) -> TracebackType | None:
    result = None
    for step in reversed(steps):
        result = TracebackType(result, step.tb_frame, step.tb_lasti, step.tb_lineno)
    return result


def _add_line(error: BaseException, frames: list[TracebackType]) -> None:
    """Name the user's line in what is raised while tracing, as the errors of this package do.

    The line is that of a frame that the error has passed, or of one that is still running.
    """
    if any("\n  at " in f"\n{text}" for text in (str(error), *getattr(error, "__notes__", ()))):
        return
    users = [f for f in frames if kinds[f.tb_frame.f_code.co_filename] is Kind.USER]
    source = user_source() if is_traced() else None
    if users:
        code = users[-1].tb_frame.f_code
        source = Source(code.co_filename, users[-1].tb_lineno, code.co_name)
    if source is None:
        return
    line = f"  at {source}, in {source.function}"
    if len(error.args) == 1 and type(error.args[0]) is str and str(error) == error.args[0]:
        error.args = (f"{error.args[0]}\n{line}",)
    else:
        error.add_note(line)
