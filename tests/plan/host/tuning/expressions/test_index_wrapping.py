"""Indices that wrap on the host: wrapped, clamped or dropped as the ops say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracegraph
from lowering.host.tuning.expressions.index_wrapping import (
    Wrapping,
    range_of,
    within,
    wrap,
    wrap_into,
    wrapping_of,
)
from lowering.plan.nests.buffer import Buffer
from tests.cases.host_nests import TUNED
from tracegraph.ir.scalar import Axis, both, clamp, select
from tracegraph.ir.scalar_values import Load
from tracegraph.ir.types import ArrayType
from tracegraph.ops.index import wrapped_index

EXTENT = 7
VECTOR = Load.make(Buffer("input", 0, ArrayType("int64", (5,))), (Axis.make(0, 5),))
INDEX = wrapped_index(VECTOR, EXTENT)
GIVEN = INDEX.other
INDICES = [
    [0, 3, 6, 6, 1],
    [-1, 2, -7, 0, 6],
    [7, -8, 3, 100, -100],
    [np.iinfo(np.int64).min, np.iinfo(np.int64).max, 0, 1, 2],
    [],
]


def wrapped(index):
    return np.where(index < 0, index + EXTENT, index)


def test_what_wraps_an_index_is_found():
    assert wrapping_of(INDEX) == Wrapping(GIVEN, EXTENT, clamped=False)
    assert wrapping_of(clamp(INDEX, 0, EXTENT - 1)) == Wrapping(GIVEN, EXTENT, clamped=True)
    assert range_of(both(INDEX >= 0, INDEX < EXTENT)) == (INDEX, EXTENT)


@pytest.mark.parametrize(
    "expr",
    [
        clamp(INDEX, 0, EXTENT),
        clamp(INDEX, 1, EXTENT - 1),
        clamp(GIVEN, 0, EXTENT - 1),
        select(GIVEN < 1, GIVEN + EXTENT, GIVEN),
        select(GIVEN < 0, GIVEN * 2, GIVEN),
        both(INDEX >= 1, INDEX < EXTENT),
        both(INDEX >= 0, GIVEN < EXTENT),
    ],
)
def test_what_does_anything_else_is_not(expr):
    assert wrapping_of(expr) is None
    assert range_of(expr) is None


@pytest.mark.parametrize("given", INDICES)
@pytest.mark.parametrize("clamped", [False, True])
def test_wrapping(given, clamped):
    index = np.array(given, np.int64)
    expected = wrapped(index).clip(0, EXTENT - 1) if clamped else wrapped(index)
    wrapping = Wrapping(GIVEN, EXTENT, clamped)
    before = index.copy()
    np.testing.assert_array_equal(wrap(wrapping)(index), expected)
    np.testing.assert_array_equal(index, before)
    wrap_into(wrapping)(index, out := np.empty_like(index))
    np.testing.assert_array_equal(out, expected)
    wrap_into(wrapping)(index, index)
    np.testing.assert_array_equal(index, expected)


@pytest.mark.parametrize("given", INDICES)
def test_whether_indices_are_in_range(given):
    index = np.array(given, np.int64)
    within(EXTENT)(index, out := np.empty(index.shape, np.bool_))
    np.testing.assert_array_equal(out, (index >= 0) & (index < EXTENT))


def test_an_index_is_wrapped_and_clamped_by_one_instruction():
    run = TUNED.evaluator((5,))
    run.value(clamp(INDEX, 0, EXTENT - 1))
    assert len(run.instructions) == 1


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.int8, np.uint8])
@pytest.mark.parametrize("given", INDICES[:3])
def test_gathers_and_scatters_of_given_indices(given, dtype):
    kept = np.array(given).astype(dtype)
    x = np.arange(EXTENT * 3.0).reshape(EXTENT, 3)
    rows = kept.astype(np.int64) if dtype is np.uint8 else wrapped(kept.astype(np.int64))
    picked = tracegraph.jit(lambda x, i: x[i], device="host")(x, kept)
    np.testing.assert_array_equal(picked, x[rows.clip(0, EXTENT - 1)])
    added = tracegraph.jit(lambda x, i: x.at[i, 1].add(1.0), device="host")(x, kept)
    np.add.at(expected := x.copy(), (rows[(rows >= 0) & (rows < EXTENT)], 1), 1.0)
    np.testing.assert_array_equal(added, expected)


@pytest.mark.parametrize("constant", [np.nan, np.inf, -np.inf, 1j, complex(np.nan, np.inf)])
def test_selects_of_constants_that_are_no_indices_are_plain_selects(constant: complex) -> None:
    dtype = np.complex128 if isinstance(constant, complex) else np.float64
    x = np.arange(5).astype(dtype)

    def padded(x: Any) -> Any:
        return np.pad(x, 1, constant_values=constant)

    def joined(x: Any) -> Any:
        return np.concatenate([x, np.full_like(x, constant)])[::-1] + x[0]

    for function in (padded, joined):
        np.testing.assert_array_equal(tracegraph.jit(function, device="host")(x), function(x))
