"""Debugging: prints, callbacks, timed sections, NVTX ranges and checks of running programs."""

from __future__ import annotations

import builtins
import string
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from tracegraph import errors
from tracegraph.callbacks import callback as callback
from tracegraph.control.regions import current_for
from tracegraph.errors.keywords import required_bool
from tracegraph.errors.tracebacks import entry_point
from tracegraph.ir.effects import PrintFormat, require_allowed
from tracegraph.ir.events import Section, TimeMark
from tracegraph.ir.op import get
from tracegraph.ir.types import ArrayType, type_of
from tracegraph.modes import check_indices
from tracegraph.staging.calls.finite_results import results_checked
from tracegraph.staging.calls.ranges import ranges as ranges
from tracegraph.user_source import user_source


@entry_point
def print(template: str, /, *args: Any, **kwargs: Any) -> None:  # the name users know
    """Print values of a running program, formatted as by ``template.format(*args, **kwargs)``.

    It prints each time that it is reached when the program runs, in the order of the program, also
    inside branches and loops; from a device, the text appears at the latest when results of the
    program are waited for. Not in the condition of a loop.

    Args:
        template: text with fields for the arguments, in the language of `str.format`.
        *args: arrays and numbers. Those without axes are formatted as Python numbers, so that
            ``{:.3f}`` works, others as NumPy arrays.
        **kwargs: the same, for fields with names.

    Raises:
        PrintArgumentError: an argument is not an array or a number.
        PrintFormatError: the template does not fit the arguments, or leaves one out.
        EffectInConditionError: it is in the condition of a loop.

    >>> print("step {}: loss {loss:.2f}", 3, loss=0.25)
    step 3: loss 0.25
    """
    _require_template(template)
    require_allowed("debug.print")
    values = (*args, *kwargs.values())
    types = _types(template, args, kwargs)
    _require_fit(template, types[: len(args)], dict(zip(kwargs, types[len(args) :], strict=True)))
    format_ = PrintFormat(template, len(args), tuple(kwargs), user_source())
    trace = current_for(values)
    if trace is None:
        builtins.print(format_.render(tuple(np.asarray(value) for value in values)))
    else:
        trace.perform(get("debug_print"), values, {"format": format_})


@contextmanager
def timed(name: str) -> Iterator[None]:
    """Measure the time of what a running program does inside the block.

    `Compiled.timings` and `Jitted.timings` have the milliseconds in the last call, by `name`; those
    of blocks of one name are added. On a device, two event nodes measure it there. They are
    barriers: nothing outside of the block runs at the same time, or is fused with what is inside,
    so that the whole may take longer. Outside of jitted functions nothing is measured. Under `vmap`
    the block is measured once, with all lanes.

    Args:
        name: what `timings` calls it.

    Raises:
        TypeError: `name` is not a string.
        EventInBodyError: when the program is compiled: it is inside a branch or a loop.
        EffectInConditionError: it is in the condition of a loop.

    >>> import tracegraph
    >>> @tracegraph.jit(device="host")
    ... def f(x):
    ...     with timed("square"):
    ...         y = x @ x
    ...     return y + 1
    >>> result = f(np.ones((100, 100)))
    >>> list(f.timings())
    ['square']
    """
    if not isinstance(name, str):
        raise TypeError(
            f"debug.timed: the name must be a string, not {errors.value_text(name)}; write "
            'with debug.timed("solve"):'
        )
    require_allowed("debug.timed")
    section, trace = Section(name), current_for(())
    if trace is not None:
        trace.perform(get("mark_time"), (), {"event": TimeMark("start", section)})
    yield
    if trace is not None:
        trace.perform(get("mark_time"), (), {"event": TimeMark("end", section)})


@contextmanager
def nans(infinities: bool = False) -> Iterator[None]:
    """Say which operation first made the NaN that is in a result.

    Calls of jitted functions inside of the block wait for their results and look at them. Where one
    has a NaN, the program is run again, op by op on the host, and an error has the operation that
    first made one, its line, the step of each loop around it, and its operands. An operation makes
    a NaN if its result has one and none of its operands does: so NaNs among the arguments are let
    through. What is compiled stays as it is, and without a NaN a call takes as long as before, but
    for the wait. Prints and callbacks without results are not repeated.

    A NaN that reaches no result is not found, such as one that `np.where` leaves out.

    Args:
        infinities: whether infinities are errors, too.

    Raises:
        TypeError: `infinities` is neither True nor False.
        NonFiniteError: by a call: a result has a NaN.

    >>> import tracegraph
    >>> @tracegraph.jit(device="host")
    ... def f(x):
    ...     return tracegraph.fori_loop(0, 5, lambda i, v: np.sqrt(v - 1), x)
    >>> with tracegraph.debug.nans():
    ...     f(2.5)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    tracegraph.errors.NonFiniteError: result of f (...) has a NaN: nan
      sqrt h at ...:3, in <lambda> made it: nan
      in step 2 of the fori_loop at ...:3
      h: f64[] = -0.5259273564193048
    """
    with results_checked(required_bool("infinities", infinities)):
        yield


@contextmanager
def checks() -> Iterator[None]:
    """All checks there are: NaNs, infinities, and indices out of range.

    Calls inside of the block are checked as by `nans` with infinities. Functions that are traced
    inside check their indices, as in `check_indices`, and have programs of their own for that.

    Raises:
        NonFiniteError: by a call: a result has a NaN or an infinity.
        IndexRangeError: a traced index is out of range, when results are waited for.

    >>> import tracegraph
    >>> inverse = tracegraph.jit(lambda x: 1 / x, device="host")
    >>> with tracegraph.debug.checks():
    ...     inverse(np.arange(2.0))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    tracegraph.errors.NonFiniteError: result of <lambda> (...) has a NaN or an infinity: 1 of 2 ...
      divide 1.0 x at ...:1, in <lambda> made it: 1 of 2 elements, the first is [0], inf
      x: f64[2], from 0.0 to 1.0
    """
    with check_indices(), nans(infinities=True):
        yield


def _require_template(template: object) -> None:
    if not isinstance(template, str):
        raise TypeError(
            f"debug.print: the template must be a string, not {errors.value_text(template)}; write "
            'debug.print("x = {}", x)'
        )
    if "Tracer<" in template:  # as tracers print themselves
        raise errors.PrintFormatError(
            template,
            "the template was formatted while tracing, when values were not known; give it plain "
            'fields, without f"", and the values as arguments',
            [],
        )


def _types(template: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[ArrayType, ...]:
    named = {**{f"argument {i}": value for i, value in enumerate(args)}, **kwargs}
    found = []
    for name, value in named.items():
        try:
            found.append(type_of(value))
        except (TypeError, OverflowError) as error:
            raise errors.PrintArgumentError(name, template, error) from None
    return tuple(found)


def _require_fit(template: str, args: Sequence[ArrayType], kwargs: Mapping[str, ArrayType]) -> None:
    """Format stand-ins of these types: what fails for them would fail when the program runs."""
    try:
        _StrictFormatter().vformat(
            template, [_stand_in(t) for t in args], {n: _stand_in(t) for n, t in kwargs.items()}
        )
    except (LookupError, ValueError, TypeError, AttributeError) as error:
        listed = [*map(str, args), *(f"{name}={type_}" for name, type_ in kwargs.items())]
        raise errors.PrintFormatError(template, str(error), listed) from None


def _stand_in(type_: ArrayType) -> Any:
    one = np.ones((), type_.dtype)
    return np.broadcast_to(one, type_.shape) if type_.shape else one.item()


class _StrictFormatter(string.Formatter):
    """`str.format` that lets no argument go unused, and says which one is missing."""

    def get_value(self, key: int | str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        if isinstance(key, int) and key >= len(args):
            raise ValueError(f"there is no argument {key}")
        if isinstance(key, str) and key not in kwargs:
            raise ValueError(f"there is no argument named {key!r}")
        return super().get_value(key, args, kwargs)

    def check_unused_args(
        self, used_args: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> None:
        unused = [f"argument {i}" for i in range(len(args)) if i not in used_args]
        unused += [name for name in kwargs if name not in used_args]
        if unused:
            raise ValueError(f"the template does not use {', '.join(unused)}")
