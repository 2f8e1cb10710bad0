"""The binary operations that reductions, scans and scatters fold with."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracegraph.ir.op import Combiner


def _zero(dtype: np.dtype[Any]) -> Any:
    return dtype.type(0)


def _one(dtype: np.dtype[Any]) -> Any:
    return dtype.type(1)


def _least(dtype: np.dtype[Any]) -> Any:
    if dtype.kind in "iu":
        return dtype.type(np.iinfo(dtype).min)
    if dtype.kind == "b":
        return np.False_
    return dtype.type(complex(-np.inf, -np.inf) if dtype.kind == "c" else -np.inf)


def _greatest(dtype: np.dtype[Any]) -> Any:
    if dtype.kind in "iu":
        return dtype.type(np.iinfo(dtype).max)
    if dtype.kind == "b":
        return np.True_
    return dtype.type(complex(np.inf, np.inf) if dtype.kind == "c" else np.inf)


ADD = Combiner(
    "add",
    np.add,
    _zero,
    {
        "b": "({0} || {1})",
        "i": "tg_add<{T}>({0}, {1})",
        "u": "tg_add<{T}>({0}, {1})",
        "f": "({0} + {1})",
        "c": "({0} + {1})",
    },
)

MULTIPLY = Combiner(
    "multiply",
    np.multiply,
    _one,
    {
        "b": "({0} && {1})",
        "i": "tg_multiply<{T}>({0}, {1})",
        "u": "tg_multiply<{T}>({0}, {1})",
        "f": "({0} * {1})",
        "c": "({0} * {1})",
    },
)

MINIMUM = Combiner(
    "minimum",
    np.minimum,
    _greatest,
    {
        "b": "({0} && {1})",
        **dict.fromkeys("iufc", "tg_minimum({0}, {1})"),
    },
)

MAXIMUM = Combiner(
    "maximum",
    np.maximum,
    _least,
    {
        "b": "({0} || {1})",
        **dict.fromkeys("iufc", "tg_maximum({0}, {1})"),
    },
)

LOGICAL_AND = Combiner(
    "logical_and",
    np.logical_and,
    lambda _: np.True_,
    dict.fromkeys("biufc", "(tg_cast<bool>({0}) && tg_cast<bool>({1}))"),
)

LOGICAL_OR = Combiner(
    "logical_or",
    np.logical_or,
    lambda _: np.False_,
    dict.fromkeys("biufc", "(tg_cast<bool>({0}) || tg_cast<bool>({1}))"),
)
