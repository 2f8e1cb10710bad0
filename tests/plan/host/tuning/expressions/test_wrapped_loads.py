"""Rolls and tiles on the host: copied in pieces, or the nest is split at breakpoints."""

from __future__ import annotations

import numpy as np

import tracegraph
from lowering.host.evaluation import numpy_calls
from lowering.host.evaluation.instructions import Instruction, Temporary, View
from lowering.host.tuning.expressions.wrapped_loads import PieceCopy
from lowering.host.tuning.instructions.contiguous_ranges import as_contiguous_ranges
from lowering.host.tuning.instructions.memory_orders import memory_order
from lowering.plan.nests.buffer import Buffer
from tests.cases.host_nests import evaluated, ones, steps_of
from tracegraph.ir.types import ArrayType


def shapes_of(steps, ufunc):
    return [made.output.shape for made in steps if made.function is ufunc]


def test_a_wrapped_load_is_copied_once_for_several_readers():
    def function(x, y):
        rolled = np.roll(x, 1, axis=1)
        return np.sin(rolled) * y, np.tanh(rolled - y)

    steps = steps_of(function, *(np.ones((40, 30), np.float32) for _ in range(2)))
    (copy,) = [made for made in steps if isinstance(made.function, PieceCopy)]
    assert copy.function.ranged
    for ufunc in (np.sin, np.multiply, np.subtract, np.tanh):
        assert shapes_of(steps, ufunc) == [(40, 30)]


def test_a_wrapped_load_in_a_fold_is_not_gathered():
    steps = steps_of(lambda x: np.sum(np.roll(x, 1, axis=0), axis=1), np.ones((40, 30)))
    assert isinstance(steps[0].function, PieceCopy)


def test_a_load_that_wraps_twice_is_not_gathered():
    def function(x, y):
        x = x + np.max(x, axis=1, keepdims=True)
        return np.roll((np.roll(x, 1, axis=1) + y) * x, 1, axis=1) + y

    steps = steps_of(function, ones(4, 3748), ones(4, 1))
    assert not any(made.kind == "assign" for made in steps)


def test_nests_over_large_arrays_are_split_rather_than_copied():
    def stencil(u):
        return np.roll(u, 1, 0) + np.roll(u, -1, 0) + np.roll(u, 1, 1) + np.roll(u, -1, 1) - 4 * u

    runs = evaluated(stencil, np.ones((512, 512), np.float32))
    assert len(runs) == 9
    assert not any(isinstance(i.function, PieceCopy) for run in runs for i in run.instructions)


def test_pieces_are_not_copied_as_ranges_to_an_array_with_gaps():
    """It takes the output for one range."""

    def function(x):
        return np.concatenate([np.roll(x, 1, axis=1), x], axis=1), np.roll(x, 1, axis=1).T

    x = np.arange(600.0).reshape(20, 30)
    results = tracegraph.jit(function, device="host")(x)
    for found, expected in zip(results, function(x), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_stores_with_nothing_in_common_become_nests():
    """Each in the order of its own memory, and cut only where its own loads wrap around."""

    def function(x, y):
        return np.roll(np.sin(x), 1, axis=1), np.tanh(y)

    steps = steps_of(function, ones(60, 70), ones(60, 70))
    assert shapes_of(steps, np.tanh) == [(60, 70)]


def test_a_large_roll_is_transposed_by_its_copy():
    """So nothing that is made of it has to be turned."""

    def function(x):
        turned = np.roll(x.T, 1, axis=1)
        return np.sin(turned), turned * turned

    x = np.random.default_rng(0).random((11, 70_000)).astype(np.float32)
    copy, *others = steps_of(function, x)
    assert isinstance(copy.function, PieceCopy)
    assert all(memory_order(r) is None for made in others for r in (*made.inputs, made.output))
    for found, expected in zip(
        tracegraph.jit(function, device="host")(x), function(x), strict=True
    ):
        np.testing.assert_array_equal(np.asarray(found), expected)


def test_a_program_with_scalars_may_run_as_one_range():
    dtype, shape = np.dtype(np.float32), (500, 42)
    source, target = (
        View(dtype, shape, {0: 0, 1: 1}, Buffer(space, 0, ArrayType(dtype, (500, 43))), (172, 4), 4)
        for space in ("input", "output")
    )
    number, half = (Temporary(dtype, (), {}) for _ in range(2))
    steps = [
        Instruction("write", np.multiply, (number, number), half),
        Instruction("write", np.add, (source, half), target, True),
    ]
    found = as_contiguous_ranges(steps, shape, frozenset({target.buffer}))
    assert found is not None
    assert found[1] == (499 * 43 + 42,)
    folded = Instruction("write", numpy_calls.folded(np.add, dtype, None), (source,), half)
    assert as_contiguous_ranges([folded, steps[1]], shape, frozenset({target.buffer})) is None


def test_narrow_windows_do_not_run_as_ranges():
    """Half of the elements from the first to the last of one column in two are the other's."""

    def function(x, y):
        x = x + np.max(x)
        return np.maximum(np.roll(x, 1, axis=1), y)

    steps = steps_of(function, ones(9000, 2), ones(9000, 2))
    assert [made.output.shape for made in steps if made.function is np.maximum][-1] == (9000, 2)
