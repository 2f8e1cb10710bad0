"""Contractions that are reduction nests on a GPU: shapes, dtypes, and how near they come to NumPy.

The error of a sum of k products is bounded by a few roundings for each level of a pairwise sum of
their magnitudes: 16-bit floats are summed in float32 and rounded once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.helpers.wide_integers import wide_integers
from tracegraph import fori_loop
from tracegraph.dtypes import bfloat16

Case = tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]

CASES: dict[str, Case] = {
    "dot": (lambda x, y: x @ y, ((1000,), (1000,))),
    "dot_of_one": (lambda x, y: x @ y, ((1,), (1,))),
    "same_operand_twice": (lambda x, y: (x @ x, x @ y), ((777,), (777,))),
    "matrix_vector": (lambda a, v: a @ v, ((130, 257), (257,))),
    "vector_matrix": (lambda v, a: v @ a, ((130,), (130, 257))),
    "transposed_matrix": (lambda a, v: (a.T @ v, v @ a), ((130, 70), (130,))),
    "strided_operands": (lambda a, v: a[::2, ::-3] @ v[1::2], ((60, 300), (201,))),
    "batched_vectors": (lambda x, y: x @ y, ((5, 1, 90), (5, 90, 1))),
    "broadcast_batch": (lambda x, y: x @ y, ((3, 1, 4, 20), (5, 20, 3))),
    "few_rows": (lambda x, y: x @ y, ((3, 300), (300, 65))),
    "few_columns": (lambda x, y: x @ y, ((65, 300), (300, 4))),
    "short_sums": (lambda x, y: x @ y, ((120, 7), (7, 130))),
    "wide": (lambda x, y: x @ y, ((1, 9), (9, 2048))),
    "outer": (lambda x, y: x @ y, ((70, 1), (1, 90))),
    "small": (lambda x, y: x @ y, ((20, 30), (30, 25))),
    "many_small": (lambda x, y: x @ y, ((200, 3, 3), (200, 3, 3))),
    "tensordot": (lambda x, y: np.tensordot(x, y, ((1, 2), (0, 1))), ((4, 6, 50), (6, 50, 3))),
    "einsum": (lambda x, y: np.einsum("bij,bj->bi", x, y), ((7, 33, 40), (7, 40))),
    "empty_sum": (lambda x, y: x @ y, ((3, 0), (0, 4))),
    "nothing": (lambda x, y: x @ y, ((0, 3), (3, 4))),
}
"""By name: a function of two arrays, and their shapes."""

UNIT = {
    np.dtype(np.float64): 2.0**-53,
    np.dtype(np.float32): 2.0**-24,
    np.dtype(np.float16): 2.0**-11,
    bfloat16: 2.0**-8,
    np.dtype(np.complex64): 2.0**-24,
    np.dtype(np.complex128): 2.0**-53,
}
"""The relative error of one rounding, by dtype."""

DTYPES = (*UNIT, *map(np.dtype, ("i1", "i4", "i8", "u2", "u8", "bool")))

HALF_SUBNORMAL = 2.0**-25
"""The error of rounding to a subnormal float16."""

ROUNDINGS = 32
"""Roundings of a sum: as many as its longest chain has steps, and most of them small."""


def operands(name: str, dtype: np.dtype[Any]) -> list[np.ndarray[Any, Any]]:
    """The operands of a case: of both signs, and large enough for integers to wrap around."""
    rng = np.random.default_rng(7)
    _, shapes = CASES[name]
    if dtype.kind == "b":
        return [rng.random(shape) < 0.1 for shape in shapes]
    if dtype.kind in "iu":
        return [wide_integers(rng, dtype, shape) for shape in shapes]
    found = [rng.standard_normal(shape) for shape in shapes]
    if dtype.kind == "c":
        found = [x + 1j * rng.standard_normal(x.shape) for x in found]
    return [x.astype(dtype) for x in found]


def assert_contracts(run: Callable[..., Any], name: str, dtype: np.dtype[Any]) -> None:
    """Require that `run(function, *arrays)` gives what NumPy gives, but for rounding."""
    function, _ = CASES[name]
    given = operands(name, dtype)
    found = run(function, *given)
    if dtype.kind in "biu":
        for got, wanted in zip(_leaves(found), _leaves(function(*given)), strict=True):
            assert np.asarray(got).dtype == dtype
            np.testing.assert_array_equal(got, wanted)
        return
    wide = np.dtype(np.complex128 if dtype.kind == "c" else np.float64)
    exact, sizes = (function(*(f(x.astype(wide)) for x in given)) for f in (np.copy, np.abs))
    half = dtype.itemsize == 2
    for got, wanted, size in zip(_leaves(found), _leaves(exact), _leaves(sizes), strict=True):
        got = np.asarray(got)
        assert (got.dtype, got.shape) == (dtype, np.shape(wanted))
        bound = ROUNDINGS * (UNIT[np.dtype(np.float32)] if half else UNIT[dtype]) * size
        if half:  # rounded once, after the sum
            bound = bound + UNIT[dtype] * np.abs(wanted) + HALF_SUBNORMAL
        assert (np.abs(got.astype(wide) - wanted) <= bound).all()


def _leaves(result: Any) -> list[Any]:
    return list(result) if isinstance(result, (tuple, list)) else [result]


def power_iteration(a: Any, v: Any, n: Any) -> Any:
    """n steps of the power method, with two contractions each."""

    def step(_: Any, v: Any) -> Any:
        w = a @ v
        return w / np.sqrt(w @ w)

    return fori_loop(0, n, step, v)
