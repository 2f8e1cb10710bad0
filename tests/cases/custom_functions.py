"""Elementwise functions of users, for all executors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracegraph
from tracegraph.dtypes import bfloat16


def _softplus(x: Any) -> Any:
    return np.log1p(np.exp(x))


softplus = tracegraph.elementwise(
    _softplus, cuda="log1p(exp({0}))", derivative=lambda x: 1 / (1 + np.exp(-x))
)


def _picked(x: Any, y: Any) -> Any:
    return np.where(x > y, x * x, y)


picked = tracegraph.elementwise(
    _picked,
    cuda={"f": "helper({0}, {1})", "iu": "{T}({0} > {1} ? {0} * {0} : {1})"},
    header="template <class X> __device__ X helper(X x, X y) { return x > y ? x * x : y; }",
    derivative=(lambda x, y: np.where(x > y, 2 * x, 0), lambda x, y: np.where(x > y, 0, 1)),
    cost=1,
)

swapped = tracegraph.elementwise(
    lambda x, y: np.where(x > y, y, x),
    cuda="helper({0}, {1})",
    header="template <class X> __device__ X helper(X x, X y) { return x > y ? y : x; }",
)
"""Its header has a function of the name of another one's."""

is_large = tracegraph.elementwise(
    lambda x: np.abs(x) > 2,
    cuda={"if": "{0} > 2 || {0} < -2", "u": "{0} > 2", "c": "tg_abs({0}) > 2"},
)

conjugated = tracegraph.elementwise(np.conjugate, cuda={"c": "{T}({0}.re, -{0}.im)"})

flipped = tracegraph.elementwise(np.logical_not, cuda={"b": "!{0}"})

FLOATS = [np.dtype(d) for d in (np.float16, np.float32, np.float64)] + [bfloat16]
INTEGERS = [np.dtype(f"{u}int{n}") for u in ("", "u") for n in (8, 16, 32, 64)]
COMPLEX = [np.dtype(np.complex64), np.dtype(np.complex128)]

CASES = [
    *[(softplus, (d,)) for d in FLOATS],
    *[(picked, (d, d)) for d in FLOATS + INTEGERS],
    *[(swapped, (d, d)) for d in FLOATS],
    *[(is_large, (d,)) for d in FLOATS + INTEGERS],
    (conjugated, (COMPLEX[0],)),
    (conjugated, (COMPLEX[1],)),
    (flipped, (np.dtype(bool),)),
    (picked, (np.dtype(np.int32), np.dtype(np.float32))),
    (swapped, (np.dtype(np.int16), np.dtype(np.int8))),
]

strongest = tracegraph.reduction(
    lambda x, y: np.where(np.abs(x) < np.abs(y), y, x),
    cuda={"if": "helper({0}, {1})", "u": "{0} < {1} ? {1} : {0}"},
    identity=0,
    header="template <class X> __device__ X helper(X x, X y) { return abs(x) < abs(y) ? y : x; }",
)
"""The element farthest from zero; which of several is open."""

exactly_one = tracegraph.reduction(
    np.logical_xor, cuda={"b": "{0} != {1}"}, identity=lambda dtype: False
)

FOLDS = [
    *[(strongest, d) for d in FLOATS + INTEGERS],
    (exactly_one, np.dtype(bool)),
]

each_fold = pytest.mark.parametrize(
    ("fold", "dtype"), FOLDS, ids=[f"{f.op.name}-{d}" for f, d in FOLDS]
)


def folded(fold: Any) -> Any:
    """A program with the reduction over each axis and all, fused and in a loop, and scans."""

    def program(x: Any) -> Any:
        loop = tracegraph.fori_loop(0, 3, lambda i, y: fold(np.roll(x, i, 0), axis=1), fold(x, 1))
        folds = fold(x), fold(x[:, ::2], axis=0), fold(x, axis=1, keepdims=True), loop
        short = fold(x[:0], axis=0), fold(x[:1], axis=0)
        return folds, short, fold.accumulate(x, 1), fold.accumulate(x[::-1])

    return program


def distinct(dtype: Any) -> Any:
    """Numbers of different absolute values, as far as the dtype has as many."""
    rng = np.random.default_rng(3)
    if dtype.kind == "b":
        return rng.integers(0, 2, (5, 24)).astype(bool)
    sign = rng.choice([-1, 1], (5, 24)) if dtype.kind != "u" else 1
    return (rng.permutation(120).reshape(5, 24) * sign).astype(dtype)


each_case = pytest.mark.parametrize(
    ("function", "dtypes"),
    CASES,
    ids=[f"{f.op.name}-{'-'.join(map(str, d))}-{n}" for n, (f, d) in enumerate(CASES)],
)


def operands(dtypes: Any) -> list[Any]:
    """Small numbers: nothing overflows."""
    rng = np.random.default_rng(len(dtypes))
    return [rng.integers(0, 5, 300).astype(dtype) for dtype in dtypes]


def surrounded(function: Any) -> Any:
    """A program in which a function is fused with others, and in a loop."""

    def program(*xs: Any) -> Any:
        y = function(*[x + x for x in xs])
        z = tracegraph.fori_loop(0, 3, lambda i, z: function(*[z.astype(x.dtype) for x in xs]), y)
        return y, z[::7], function(*xs)[::-1]

    return program
