"""Numbers that NumPy's global generator draws while a function is traced: a warning about them.

They are constants of the program: every call has the same ones.
"""

from __future__ import annotations

import ctypes
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from tracegraph.errors import FrozenRandomWarning, function_text
from tracegraph.tracing.draws import first_draw
from tracegraph.tracing.trace import current_trace

_WORDS = 625
"""Of the Mersenne Twister, which the global generator is: 624, and the place in them."""

_FRESH = 623
"""The place from which a generator that was just made goes on."""


class _State(NamedTuple):
    """The state of the global generator.

    `kept` says whether it keeps a normal number for the next call, which would not change `words`.
    """

    words: bytes
    kept: bool


class _Read:
    state: _State | None = None


_last = _Read()
"""The state that was read last. Reading all of one takes 70 µs, `words` alone less than one."""


@contextmanager
def warned_of_draws(function: Callable[..., Any]) -> Iterator[None]:
    """Warn at the user's line if the global generator has drawn numbers in the body.

    Raises:
        FrozenRandomWarning: warnings are errors.
    """
    if current_trace() is not None:  # the outermost trace asks
        yield
        return
    before = _state()
    yield
    after = _state()
    if after is not None and after != before and not (before is None and _is_fresh(after)):
        _warn(function)


def _state() -> _State | None:
    """The state of the global generator; None before `numpy.random` is imported."""
    random = sys.modules.get("numpy.random")
    if random is None or not hasattr(random, "mtrand"):  # or while it is
        return None
    generator = random.mtrand._rand._bit_generator
    if type(generator).__name__ != "MT19937":
        return _State(repr(generator.state).encode(), _keeps_a_number(random))
    words = ctypes.string_at(generator.ctypes.state_address, 4 * _WORDS)
    last = _last.state
    if last is None or last.kept or words != last.words:
        last = _last.state = _State(words, _keeps_a_number(random))
    return last


def _keeps_a_number(random: Any) -> bool:
    return bool(random.get_state(legacy=False)["has_gauss"])


def _is_fresh(state: _State) -> bool:
    """Whether it is that of a generator which has drawn nothing."""
    return int.from_bytes(state.words[-4:], sys.byteorder) == _FRESH and not state.kept


_DRAW_NOTHING = ("tracegraph starts", "tracegraph opens", "tracegraph loads", "tracegraph compiler")
"""What the names of our threads begin with that run no function of a user."""


def _warn(function: Callable[..., Any]) -> None:
    draw = first_draw(function)
    if draw is None:
        names = [thread.name for thread in threading.enumerate()]
        if sum(not name.startswith(_DRAW_NOTHING) for name in names) > 1:
            return  # another thread may have drawn
        warnings.warn(FrozenRandomWarning(function_text(function), None, None), stacklevel=2)
    else:
        warning = FrozenRandomWarning(function_text(function), draw.text, draw.twin)
        warnings.warn_explicit(warning, FrozenRandomWarning, draw.file, draw.line)
