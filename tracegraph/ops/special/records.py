"""How the records of special functions are made: their dtypes, references and texts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numpy._core import umath

from tracegraph.ir.derivative import Partials
from tracegraph.ir.op import Op
from tracegraph.ops.elementwise import Select, texts, ufunc_op

Array = np.ndarray[Any, Any]

COST = 16
"""Most are several exponentials or divisions."""


class _OfThree:
    """The dtypes of a ufunc of three real numbers, since NumPy has none."""

    nin = 3

    def resolve_dtypes(self, tokens: tuple[Any, ...]) -> tuple[np.dtype[Any], ...]:
        common = _CLIP.resolve_dtypes(tokens)[0]
        return (np.cbrt.resolve_dtypes((common, None))[0],) * 4


_CLIP: np.ufunc = umath.clip  # type: ignore[attr-defined]  # the stubs leave it out

_DTYPES = {1: np.cbrt, 2: np.hypot, 3: cast(np.ufunc, _OfThree())}
"""Ufuncs of NumPy that take real numbers only: special functions have the same dtypes."""


def special(
    name: str,
    doc: str,
    text: str,
    values: Callable[..., Array],
    *partials: Callable[..., Any],
    cost: int = COST,
    domain: tuple[float, float] = (0.2, 0.9),
    operands: Select | None = None,
) -> Op:
    """Register a special function of one to three real operands.

    Args:
        name: that of `scipy.special`.
        doc: one line.
        text: C++ for float and double.
        values: the function of arrays of float64; narrower operands are widened, and the results
            rounded.
        partials: its derivatives, as in `Partials`.
        cost: see `Elementwise`.
        domain: see `Partials`.
        operands: see `ufunc_op`.
    """
    return ufunc_op(
        _DTYPES[len(partials)],
        doc,
        texts(f=text),
        name=name,
        reference=in_float64(values),
        cost=cost,
        operands=operands,
        derivative=Partials(*partials, domain=domain),
    )


def in_float64(values: Callable[..., Array]) -> Callable[..., Array]:
    """A function of float64 arrays as one of arrays of any floating-point dtype."""

    def function(*operands: Array) -> Array:
        found = values(*[np.asarray(x, np.float64) for x in operands])
        return np.asarray(found).astype(operands[0].dtype)[()]  # of scalars, a scalar

    return function
