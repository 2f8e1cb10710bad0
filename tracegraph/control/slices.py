"""Slices along the leading axis: taking one, cutting blocks of them, stacking them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from tracegraph.arrays.eager import apply
from tracegraph.ir.op import get
from tracegraph.ir.types import ArrayType, result_type, type_of
from tracegraph.tracing.trace import bind, current_trace


def take(x: Any, i: int) -> Any:
    """Slice `i`."""
    shape = type_of(x).shape[1:]
    return apply_op("reshape", _run_of(x, i, 1), shape=shape)


def cut(x: Any, start: int, blocks: int, size: int) -> Any:
    """`blocks` blocks of `size` slices each, from `start` on, along a new leading axis."""
    shape = type_of(x).shape[1:]
    return apply_op("reshape", _run_of(x, start, blocks * size), shape=(blocks, size, *shape))


def merge(x: Any) -> Any:
    """The slices of all blocks, one after another: undoes `cut`."""
    blocks, size, *shape = type_of(x).shape
    return apply_op("reshape", x, shape=(blocks * size, *shape))


def join(parts: Sequence[Any]) -> Any:
    """The slices of all parts, one after another."""
    return apply_op("concatenate", *parts, axis=0)


def stack(leaves: Sequence[Any], dtype: np.dtype[Any] | None = None) -> Any:
    """Values of one shape along a new leading axis, in `dtype` or their common dtype."""
    types = [type_of(leaf) for leaf in leaves]
    if dtype is None:
        dtype = meeting(types)
    rows = [
        apply_op(
            "reshape",
            leaf if t.dtype == dtype else apply_op("cast", leaf, dtype=dtype),
            shape=(1, *t.shape),
        )
        for leaf, t in zip(leaves, types, strict=True)
    ]
    return join(rows)


def meeting(types: Sequence[ArrayType]) -> np.dtype[Any]:
    """The common dtype of values of these types."""
    return reduce(lambda a, b: ArrayType(result_type(a, b), (), a.weak and b.weak), types).dtype


def _run_of(x: Any, start: int, count: int) -> Any:
    shape = type_of(x).shape[1:]
    zeros, ones = (0,) * len(shape), (1,) * len(shape)
    attrs = {"starts": (start, *zeros), "steps": (1, *ones), "sizes": (count, *shape)}
    return apply_op("slice", x, **attrs)


def apply_op(name: str, *args: Any, **attrs: Any) -> Any:
    """Run an op, or while tracing record it, even if no operand is traced."""
    trace = current_trace()
    return (
        apply(get(name), *args, **attrs) if trace is None else bind(trace, get(name), args, attrs)
    )
