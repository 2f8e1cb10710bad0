"""Intermediate values of the host lie in memory as what they are made of."""

from __future__ import annotations

import numpy as np
import pytest
from host_cases import block_length, disjoint, evaluated, ones, programs_of, steps_of

import tracegraph
from lowering.host import numpy_calls as functions
from lowering.host.instructions import (
    Instruction,
    Method,
    ReversedTemporary,
    Temporary,
    View,
)
from lowering.host.tuning.blocking import HUGE_BYTES, STRIP, WIDE_STRIP
from lowering.host.tuning.contiguous_ranges import as_contiguous_ranges
from lowering.host.tuning.memory_orders import memory_order
from lowering.host.tuning.reversed_chains import count_reversals
from lowering.host.tuning.reversed_views import copy_reversed
from lowering.host.tuning.transposed_stores import read_stored_copies
from lowering.host.tuning.wrapped_loads import PieceCopy
from lowering.plan.buffer import Buffer
from tracegraph.ir.types import ArrayType


def centred(x):
    y = np.tanh(x)
    return y - np.mean(y, axis=0, keepdims=True)


def test_columns_are_worked_on_in_the_order_of_memory():
    (run,) = evaluated(centred, np.ones((512, 512), np.float32))
    large = [
        r
        for made in run.instructions
        for r in (made.output, *made.inputs)
        if isinstance(r, View | Temporary) and r.shape == (512, 512)
    ]
    assert len(large) > 2
    assert {memory_order(r) for r in large} == {None}


def test_blocks_have_whole_lines():
    (columns,) = programs_of(centred, np.ones((512, 20_000), np.float32))
    assert block_length(columns) is None
    (rows,) = programs_of(lambda x: 2 * x - x.mean(axis=1, keepdims=True), np.ones((512, 20_000)))
    assert block_length(rows) < 512
    (line,) = programs_of(lambda x: np.sin(x) + x, np.ones(1 << 20))
    assert block_length(line) < 1 << 20


def test_what_is_vectorised_forwards_alone_reads_no_reversed_view():
    steps = steps_of(lambda x: np.sin(x[:, ::-1]) + x, np.ones((20, 30), np.float32))
    assert steps[0].function is functions.store
    (sine,) = [made for made in steps if made.function is np.sin]
    assert sine.inputs[0] is steps[0].output
    assert min(sine.inputs[0].strides) > 0


@pytest.mark.parametrize(
    ("fold", "strides"),
    [
        (lambda x: x[::-1, ::-1].sum(), {80, 4}),
        (lambda x: x[::-1, ::-1].max(axis=0), {80, -4}),
        (lambda x: x[::-1, ::-1].sum(axis=1), {-80, 4}),
    ],
)
def test_what_is_folded_is_read_forwards(fold, strides):
    x = np.random.default_rng(0).random((30, 20), np.float32)
    (made,) = [made for made in steps_of(fold, x) if isinstance(made.function, Method)]
    (value,) = made.inputs
    assert set(value.strides) == strides
    np.testing.assert_allclose(tracegraph.jit(fold, device="host")(x), fold(x), rtol=1e-6)


INDEX = np.array([3, 1, 1, 0] * 20)


@pytest.mark.parametrize(
    ("function", "copies"),
    [
        (lambda x, y: x[INDEX][:, ::-1] + y, 0),
        (lambda x, y: (x[INDEX][:, ::-1] + y, x[INDEX][:, ::-1] * y), 1),
        (lambda x, y: x[INDEX][:, ::-1].sum() + y, 0),
    ],
)
def test_gathered_rows_are_turned_round_once_if_more_than_one_call_reads_them(function, copies):
    x, y = np.random.default_rng(1).random((2, 4, 60))
    y = y[[0] * len(INDEX)]
    steps = steps_of(function, x, y)
    copied = [made.inputs[0] for made in steps if made.function is functions.store]
    turned = [
        r for r in copied if isinstance(r, ReversedTemporary) or min(r.strides, default=0) < 0
    ]
    assert len(turned) == copies
    found, wanted = tracegraph.jit(function, device="host")(x, y), function(x, y)
    for each, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(each, other)


def test_what_several_calls_read_mirrored_is_turned_round_once():
    base = Temporary(np.dtype(np.float64), (300,), {0: 0})
    seen = ReversedTemporary.of(base, frozenset({0}))
    made = Instruction("write", np.sin, (base,), base)
    out = [Temporary(base.dtype, base.shape, base.dims) for _ in range(2)]
    reads = [Instruction("write", np.add, (seen, seen), each) for each in out]
    assert copy_reversed([made, reads[0]], disjoint) == [made, reads[0]]
    first, copy, *rest = copy_reversed([made, *reads], disjoint)
    assert (first, copy.function, copy.inputs) == (made, functions.store, (seen,))
    assert [each.inputs for each in rest] == [(copy.output, copy.output)] * 2


def shapes_of(steps, ufunc):
    return [made.output.shape for made in steps if made.function is ufunc]


def test_what_wraps_around_is_copied_once_where_several_calls_read_it():
    def function(x, y):
        rolled = np.roll(x, 1, axis=1)
        return np.sin(rolled) * y, np.tanh(rolled - y)

    steps = steps_of(function, *(np.ones((40, 30), np.float32) for _ in range(2)))
    (copy,) = [made for made in steps if isinstance(made.function, PieceCopy)]
    assert copy.function.ranged
    for ufunc in (np.sin, np.multiply, np.subtract, np.tanh):
        assert shapes_of(steps, ufunc) == [(40, 30)]


def test_what_wraps_around_in_a_fold_is_not_looked_up():
    steps = steps_of(lambda x: np.sum(np.roll(x, 1, axis=0), axis=1), np.ones((40, 30)))
    assert isinstance(steps[0].function, PieceCopy)


def test_what_wraps_around_twice_is_not_looked_up():
    def function(x, y):
        x = x + np.max(x, axis=1, keepdims=True)
        return np.roll((np.roll(x, 1, axis=1) + y) * x, 1, axis=1) + y

    steps = steps_of(function, ones(4, 3748), ones(4, 1))
    assert not any(made.kind == "assign" for made in steps)


def test_large_arrays_are_cut_rather_than_copied():
    def stencil(u):
        return np.roll(u, 1, 0) + np.roll(u, -1, 0) + np.roll(u, 1, 1) + np.roll(u, -1, 1) - 4 * u

    runs = evaluated(stencil, np.ones((512, 512), np.float32))
    assert len(runs) == 9
    assert not any(isinstance(i.function, PieceCopy) for run in runs for i in run.instructions)


def test_a_copy_by_ranges_goes_to_no_array_with_gaps():
    """It takes the output for one range."""

    def function(x):
        return np.concatenate([np.roll(x, 1, axis=1), x], axis=1), np.roll(x, 1, axis=1).T

    x = np.arange(600.0).reshape(20, 30)
    results = tracegraph.jit(function, device="host")(x)
    for found, expected in zip(results, function(x), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_no_call_writes_across_what_it_reads():
    """A result in another order is a copy, and not what the other values are made of."""

    def function(x, y):
        z = x * y
        return z.T, z - np.mean(z, axis=0, keepdims=True)

    for made in steps_of(function, *(np.ones((300, 40), np.float32) for _ in range(2))):
        orders = {memory_order(r) for r in (*made.inputs, made.output) if r.shape == (40, 300)}
        assert len(orders) < 2 or made.function is functions.store


def test_values_of_rows_and_columns_lie_as_what_is_stored():
    def function(row, column):
        product = np.where(row > column, row, column)
        return product, np.sum(product, axis=0)

    steps = steps_of(function, np.ones((1, 900)), np.ones((50, 1)))
    large = [made.output for made in steps if made.output.shape == (50, 900)]
    assert large
    assert {memory_order(output) for output in large} == {None}


def test_columns_that_are_only_folded_have_their_longest_axis_innermost():
    steps = steps_of(lambda row, column: np.sum(row * column, axis=0), ones(1, 9000), ones(5, 1))
    assert [memory_order(m.output) for m in steps if m.function is np.multiply] == [(1, 0)]


@pytest.mark.parametrize("reads", [1, 2])
def test_a_reversed_view_that_several_calls_read_is_copied(reads):
    def function(x, y):
        reversed_ = x[::-1]
        return (reversed_ + y, reversed_ * y)[:reads]

    steps = steps_of(function, ones(900), ones(900))
    assert sum(made.function is functions.store for made in steps) == (reads > 1)


def test_a_reversed_view_of_what_changes_is_not_copied():
    output = Temporary(np.dtype(float), (900,), {0: 0})
    buffer = Buffer("scratch", 0, ArrayType(np.dtype(float), (900,)))
    back = View(output.dtype, (900,), {0: 0}, buffer, (-8,), 8 * 899)
    whole = View(output.dtype, (900,), {0: 0}, buffer, (8,), 0)
    reads = [Instruction("write", np.sin, (back,), output) for _ in range(2)]
    store = Instruction("write", functions.store, (output,), whole)
    assert copy_reversed([reads[0], store, reads[1]], disjoint) == [reads[0], store, reads[1]]
    assert len(copy_reversed([*reads, store], disjoint)) == 4


def test_blocks_along_the_axis_of_memory_are_not_few():
    """Of few, the last would be short runs."""
    (run,) = programs_of(centred, np.ones((512, 2500), np.float32))
    assert block_length(run) is None


def test_blocks_do_not_part_the_lines_of_what_is_read_across():
    """Each of them would read all of these lines."""
    (run,) = programs_of(lambda x, y: np.max(y * x.T, axis=1), ones(36_000, 10), ones(10, 36_000))
    assert block_length(run) is None


def test_blocks_need_a_value_that_is_handed_on_or_what_no_cache_holds():
    """To go through an array once for several calls saves little while it is in a cache."""

    def apart_from_each_other(x):
        return x + 1, x * 2

    (few,) = programs_of(apart_from_each_other, ones(1 << 20))
    assert block_length(few) is None
    (many,) = programs_of(apart_from_each_other, ones(HUGE_BYTES // 4))
    assert block_length(many) < HUGE_BYTES // 4
    (handed_on,) = programs_of(lambda x: (x + 1, np.sin(x) * x), ones(1 << 20))
    assert block_length(handed_on) < 1 << 20


def strip_of(function, *arguments):
    (program,) = programs_of(function, *arguments)
    return block_length(program)


@pytest.mark.parametrize(
    ("function", "shape", "expected"),
    [
        (lambda x: x.T + 1, (1024, 1024), STRIP),  # one of 64 lines in a page: 256 of them are kept
        (lambda x: x.T + x, (1024, 1024), STRIP),
        (lambda x: x.T + 1, (1800, 300), 450),  # all 1,800 are kept: as many strips as blocks
        (lambda x: x.T + 1, (500, 2000), WIDE_STRIP),
        (lambda x: x.T + x, (600, 600), None),  # and what is read in order is read so
        (lambda x: x.T * x + x.T, (600, 600), None),  # by whatever call
        (lambda x: x.T + 1, (40_000, 25), 2048),  # 16,384 are
        (lambda x: x.T + 1, (300_000, 4), None),  # a line of memory has all of some rows
        (lambda x: x[:, ::64].T * 2, (4096, 64 * 128), 256),  # what is stored turned is a copy
        (lambda x: x[::64] * 2, (64 << 18,), None),  # nothing is read across
    ],
)
def test_strips_are_as_wide_as_a_cache_keeps_the_lines_that_are_read(function, shape, expected):
    assert strip_of(function, ones(*shape)) == expected


@pytest.mark.parametrize("shape", [(1, 1), (1, 40), (40, 1), (7, 9), (300, 200), (1100, 1300)])
def test_results_do_not_depend_on_the_layout(shape):
    x = np.random.default_rng(0).random(shape)

    def function(x):
        centred = x.T[::-1] - np.mean(x, axis=0)[::-1, None]
        rolled = np.roll(np.roll(centred, 1, axis=0), -1, axis=1)[:, ::-1]
        return (
            np.exp(centred),
            np.sum(centred * centred, axis=1),
            np.cumsum(centred, axis=0),
            (np.tanh(rolled) + rolled * centred).T,
            np.max(np.roll(x, 2, axis=1) + x, axis=0),
        )

    for found, expected in zip(
        tracegraph.jit(function, device="host")(x), function(x), strict=True
    ):
        np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-9, atol=1e-9)


def test_what_has_nothing_in_common_is_computed_one_after_the_other():
    """Each in the order of its own memory, and cut only where its own loads wrap around."""

    def function(x, y):
        return np.roll(np.sin(x), 1, axis=1), np.tanh(y)

    steps = steps_of(function, ones(60, 70), ones(60, 70))
    assert shapes_of(steps, np.tanh) == [(60, 70)]


def chain_on_reversed_views(x, y):
    x, y = x[::-1], y[::-1]
    return np.tanh(x * y - x) + y


@pytest.mark.parametrize("shape", [(900,), (30, 40)])
def test_calls_on_reversed_views_alone_go_forwards(shape):
    """Only their result is read from the last element to the first."""
    steps = steps_of(chain_on_reversed_views, ones(*shape), ones(*shape))
    for made in steps[:-1]:
        views = [r for r in made.inputs if isinstance(r, View)]
        assert all(stride > 0 for view in views for stride in view.strides)
    assert steps[-1].function is functions.store
    assert isinstance(steps[-1].inputs[0], ReversedTemporary)
    assert count_reversals(steps) == 1


def test_one_call_on_a_reversed_view_needs_no_copy():
    (made,) = steps_of(lambda x: x[::-1] * 2.0, ones(900))
    assert made.function is np.multiply


@pytest.mark.parametrize(
    "shape", [(3,), (900,), (1 << 20,), (30, 40), (1100, 1300), (2, 1 << 18), (1 << 18, 2)]
)
def test_results_of_calls_that_go_the_other_way_are_the_same(shape):
    rng = np.random.default_rng(0)
    x, y = (rng.random(shape, np.float32) for _ in range(2))

    def function(x, y):
        chained = chain_on_reversed_views(x, y)
        partly = chain_on_reversed_views(x[..., ::-1], y[..., ::-1]) * x
        return chained, partly, np.where(x[::-1] > y[::-1], chained, x[::-1]) - 1

    found = tracegraph.jit(function, device="host")(x, y)
    for array, expected in zip(found, function(x, y), strict=True):
        np.testing.assert_array_equal(np.asarray(array), expected)


def test_a_fold_reads_a_stored_copy_along_longer_runs():
    """NumPy's inner loops go along memory: here 300 elements instead of 7."""

    def function(x):
        turned = np.roll(x.T, 1, axis=1)
        return turned, np.max(turned, axis=1)

    x = np.random.default_rng(0).random((300, 7))
    copy, fold = steps_of(function, x)[-2:]
    assert copy.function is functions.store
    assert isinstance(fold.function, Method)
    assert fold.inputs == (copy.output,)
    for found, expected in zip(
        tracegraph.jit(function, device="host")(x), function(x), strict=True
    ):
        np.testing.assert_array_equal(np.asarray(found), expected)


@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_no_call_computes_a_single_number_in_place(shape):
    """NumPy takes three times as long for that."""
    (found,) = programs_of(lambda x: np.sin(np.tanh(np.sin(x))), np.ones(shape, np.float32))
    first, second, last = found.instructions
    assert isinstance(last.output, View)
    assert found.starts[first.output] != found.starts[second.output]


def test_what_is_made_of_a_turned_value_reads_the_stored_copy():
    def function(x):
        turned = np.roll(x.T, 1, axis=1)
        return turned, turned * 2.0, turned * turned

    x = np.random.default_rng(0).random((7, 2055)).astype(np.float32)
    copies = [made for made in steps_of(function, x) if made.function is functions.store]
    assert len(copies) == 1
    for found, expected in zip(
        tracegraph.jit(function, device="host")(x), function(x), strict=True
    ):
        np.testing.assert_array_equal(np.asarray(found), expected)


def test_a_large_roll_is_copied_in_the_order_of_what_is_stored():
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


@pytest.mark.parametrize("disturbed", [False, True])
def test_a_value_is_stored_early_only_where_nothing_is_disturbed(disturbed):
    shape, dtype = (40, 300), np.dtype(np.float32)
    dims, strides = {0: 0, 1: 1}, (1200, 4)

    def target(number):
        return View(
            dtype, shape, dims, Buffer("output", number, ArrayType(dtype, shape)), strides, 0
        )

    value, double = (Temporary(dtype, shape, dims, (1, 0)) for _ in range(2))
    first, second = target(0), target(1)
    other = View(dtype, shape, dims, first.buffer if disturbed else second.buffer, strides, 0)
    steps = [
        Instruction("write", functions.store, (target(2),), value, True),
        Instruction("write", np.add, (value, value), double, True),
        Instruction("write", np.sin, (other,), Temporary(dtype, shape, dims), True),
        Instruction("write", functions.store, (double,), second, True),
        Instruction("write", functions.store, (value,), first, True),
    ]
    found = read_stored_copies(steps, disjoint)
    assert (found == steps) == disturbed
    assert disturbed or [made.output for made in found[:2]] == [value, first]


def test_a_value_that_other_calls_read_is_not_stored_turned_in_their_stead():
    """They would read across memory what a copy has in order."""

    def function(x, y):
        reversed_ = x[:, ::-1]
        return reversed_.T, np.sin(reversed_), reversed_ + y, reversed_ * y

    for made in steps_of(function, ones(73, 1541), ones(73, 1541)):
        if made.function is not functions.store:
            orders = {memory_order(r) for r in (*made.inputs, made.output)}
            assert len(orders) == 1


def test_windows_are_run_as_a_range_where_numbers_are_made_beside_them():
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
    folded = Instruction("write", functions.folded(np.add, dtype, None), (source,), half)
    assert as_contiguous_ranges([folded, steps[1]], shape, frozenset({target.buffer})) is None


def test_narrow_windows_are_not_taken_for_ranges():
    """Half of the elements from the first to the last of one column in two are the other's."""

    def function(x, y):
        x = x + np.max(x)
        return np.maximum(np.roll(x, 1, axis=1), y)

    steps = steps_of(function, ones(9000, 2), ones(9000, 2))
    assert [made.output.shape for made in steps if made.function is np.maximum][-1] == (9000, 2)
