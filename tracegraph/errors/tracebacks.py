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

from tracegraph.errors.programs import VerificationError
from tracegraph.user_source import Kind, kinds

P = ParamSpec("P")
R = TypeVar("R")

_FAULTS = (VerificationError, AssertionError, KeyError, NameError, NotImplementedError)
"""What this package raises only by a mistake of its own. Whoever reports it needs all frames."""


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
            raise

    return entered


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
        shown.__traceback__ = _without_own(shown.__traceback__, isinstance(shown, _FAULTS))
        rest += (shown.__cause__, shown.__context__)
        if isinstance(shown, BaseExceptionGroup):
            rest += shown.exceptions


def _without_own(traceback: TracebackType | None, may_be_fault: bool) -> TracebackType | None:
    """A traceback without this package's frames, and those of libraries that these call.

    One whose last frames are such is left alone if it may be a fault of this package.
    """
    kept: list[TracebackType] = []
    hidden, step = False, traceback
    while step is not None:
        kind = kinds[step.tb_frame.f_code.co_filename]
        if kind is not Kind.SUPPORT:  # NumPy and Python's library belong to whose code calls them
            hidden = kind is Kind.OWN
        if not hidden:
            kept.append(step)
        step = step.tb_next
    if hidden and may_be_fault:
        return traceback
    result = None
    for step in reversed(kept):
        result = TracebackType(result, step.tb_frame, step.tb_lasti, step.tb_lineno)
    return result
