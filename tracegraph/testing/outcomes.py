"""Outcomes of runs: what a run returns or raises, and what it prints."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import redirect_stdout
from dis import opmap
from io import StringIO
from typing import Any

import numpy as np

from tracegraph import tree
from tracegraph.generated.dataclass import dataclass
from tracegraph.user_source import Kind, kinds

_RAISE = opmap["RAISE_VARARGS"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run did: its result, or the error that ended it, and its prints until then."""

    result: Any = None
    error: Exception | None = None
    printed: str = ""


def outcome(run: Callable[[], Any]) -> Outcome:
    """Run, wait for the results, and keep what happened. NumPy's warnings are ignored."""
    with redirect_stdout(StringIO()) as text, np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # overflow is part of what is compared
        try:
            result = run()
            for leaf in tree.leaves(result):
                np.asarray(leaf)  # waits for a device
        except Exception as error:
            return Outcome(error=error, printed=text.getvalue())
    return Outcome(result=result, printed=text.getvalue())


def text_of(error: Exception) -> str:
    """The type and the first line of an error's message: later lines name places."""
    line = str(error).partition("\n")[0]
    return f"{type(error).__qualname__}: {line}" if line else type(error).__qualname__


def same_error(eager: Exception, traced: Exception) -> bool:
    """Whether an error is what the eager run raised.

    Its type must be the same or a subclass. Messages must be equal where both come from one place:
    a `raise` in the user's code, or tracegraph. NumPy's are worded by NumPy when run eagerly.
    """
    if not isinstance(traced, type(eager)):
        return False
    worded_alike = type(eager).__module__.startswith("tracegraph.") or _raised_by_user(eager)
    return not worded_alike or text_of(eager) == text_of(traced)


def _raised_by_user(error: Exception) -> bool:
    """Whether a `raise` statement in the user's code raised it, and not a call of NumPy."""
    traceback = error.__traceback__
    if traceback is None:
        return False
    while traceback.tb_next is not None:
        traceback = traceback.tb_next
    code = traceback.tb_frame.f_code
    return kinds[code.co_filename] is Kind.USER and code.co_code[traceback.tb_lasti] == _RAISE
