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


def _all_bits(dtype: np.dtype[Any]) -> Any:
    return np.invert(dtype.type(0))


def _not_a_number(dtype: np.dtype[Any]) -> Any:
    return dtype.type(complex(np.nan, np.nan) if dtype.kind == "c" else np.nan)


def _greatest_or_nan(dtype: np.dtype[Any]) -> Any:
    return _greatest(dtype) if dtype.kind in "biu" else _not_a_number(dtype)


def _least_or_nan(dtype: np.dtype[Any]) -> Any:
    return _least(dtype) if dtype.kind in "biu" else _not_a_number(dtype)


def _minus_infinity(dtype: np.dtype[Any]) -> Any:
    return dtype.type(-np.inf)


FMIN = Combiner(
    "fmin",
    np.fmin,
    _greatest_or_nan,
    {"b": "({0} && {1})", **dict.fromkeys("iufc", "tg_fmin({0}, {1})")},
)

FMAX = Combiner(
    "fmax",
    np.fmax,
    _least_or_nan,
    {"b": "({0} || {1})", **dict.fromkeys("iufc", "tg_fmax({0}, {1})")},
)

LOGICAL_XOR = Combiner(
    "logical_xor",
    np.logical_xor,
    lambda _: np.False_,
    dict.fromkeys("biufc", "(tg_cast<bool>({0}) != tg_cast<bool>({1}))"),
)

BITWISE_AND = Combiner(
    "bitwise_and", np.bitwise_and, _all_bits, dict.fromkeys("biu", "(({T})({0} & {1}))")
)

BITWISE_OR = Combiner(
    "bitwise_or", np.bitwise_or, _zero, dict.fromkeys("biu", "(({T})({0} | {1}))")
)

BITWISE_XOR = Combiner(
    "bitwise_xor", np.bitwise_xor, _zero, dict.fromkeys("biu", "(({T})({0} ^ {1}))")
)

GCD = Combiner("gcd", np.gcd, _zero, dict.fromkeys("iu", "tg_gcd<{T}>({0}, {1})"))

LCM = Combiner("lcm", np.lcm, _one, dict.fromkeys("iu", "tg_lcm<{T}>({0}, {1})"))

HYPOT = Combiner("hypot", np.hypot, _zero, {"f": "tg_hypot({0}, {1})"})

LOGADDEXP = Combiner("logaddexp", np.logaddexp, _minus_infinity, {"f": "tg_logaddexp({0}, {1})"})

LOGADDEXP2 = Combiner(
    "logaddexp2", np.logaddexp2, _minus_infinity, {"f": "tg_logaddexp2({0}, {1})"}
)
