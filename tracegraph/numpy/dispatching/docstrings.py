"""Docstrings of functions of one pattern: ufuncs and reductions.

The first line of such a function is its own. Shapes, dtypes and errors follow from what the ufunc
takes, or are those of all reductions. In examples, `tnp` is `tracegraph.numpy`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np

_F = TypeVar("_F", bound=Callable[..., Any])

_KINDS = {"?": "bools", "l": "integers", "d": "real numbers", "D": "complex numbers"}
"""A dtype of each kind, by character, and the words for the kind."""


SUMMED = "64-bit integers for bools and integers, else that of `a`; or `dtype`."
AVERAGED = "float64 for bools and integers, else that of `a`; or `dtype`."
SQUARED = "float64 for bools and integers, else that of `a`, real for complex; or `dtype`."
SAME = "that of `a`."


def example(name: str, call: str, result: str) -> str:
    """A doctest of one call."""
    return f">>> tnp.{name}({call})\n    {result}\n    "


def ufunc_docstring(name: str, doc: str, ufunc: np.ufunc, call: str, result: str) -> str:
    """The docstring of the function for a ufunc of one result.

    Args:
        name: the ufunc's name.
        doc: one line on what it computes.
        ufunc: what decides on shapes, dtypes and errors.
        call: the arguments of an example.
        result: what the example prints.
    """
    several = ufunc.nin > 1
    shape = "that to which the operands broadcast." if several else "that of `x`."
    errors = {
        "TypeError": _rejected(ufunc),
        "ValueError": "the operands do not broadcast." if several else "",
        "UnsupportedByTracerError": "`where` without `out`; `out` not made where it is traced.",
    }
    return (
        f"{doc}\n\n    Shape: {shape}\n    Dtype: {_result_dtype(ufunc)}\n"
        "    `out`, `where` and `dtype` are as in NumPy.\n\n"
        f"    {_raises(errors)}\n    {example(name, call, result)}"
    )


def _raises(errors: Mapping[str, str]) -> str:
    lines = [f"        {error}: {when}\n" for error, when in errors.items() if when]
    return f"Raises:\n{''.join(lines)}" if lines else ""


def _result_dtype(ufunc: np.ufunc) -> str:
    loops = set(ufunc.types)
    takes = "l" * ufunc.nin
    same = "the common one of the operands" if ufunc.nin > 1 else "that of `x`"
    if f"{takes}->?" in loops or "d->?" in loops:
        return "bool."
    if f"{takes}->l" not in loops:
        return f"{same}; integers become floating point, 64-bit ones float64."
    return f"{same}; real for complex `x`." if "D->d" in loops else f"{same}."


def _rejected(ufunc: np.ufunc) -> str:
    """Which dtypes a ufunc does not take, in words."""
    kinds = [words for kind, words in _KINDS.items() if not _takes(ufunc, kind)]
    if kinds == [*_KINDS.values()][2:]:
        return "an operand is floating point or complex."
    return f"for {' and '.join(kinds)}." if kinds else ""


def _takes(ufunc: np.ufunc, kind: str) -> bool:
    try:
        ufunc.resolve_dtypes((*[np.dtype(kind)] * ufunc.nin, None))
    except TypeError:
        return False
    return True


def reduction(
    dtype: str, call: str = "", result: str = "{result}", empty: str = ""
) -> Callable[[_F], _F]:
    """Append shape, dtype, errors and an example to the docstring of a function over axes.

    Args:
        dtype: the sentence on the result's dtype.
        call: the arguments of the example; in a family, each function has its own.
        result: what it prints.
        empty: what is raised where there are no elements; some reductions have a result then.
    """

    def decorate(function: _F) -> _F:
        errors = {"AxisError": "an axis is out of range.", "ValueError": empty}
        shown = example(function.__name__ if call else "{name}", call or "{call}", result)
        function.__doc__ = (
            f"{(function.__doc__ or '').rstrip()}\n\n"
            "    Shape: that of `a` without the axes, all by default; with `keepdims`, they stay\n"
            f"    with extent 1.\n    Dtype: {dtype}\n\n"
            f"    {_raises(errors)}\n    {shown}"
        )
        return function

    return decorate
