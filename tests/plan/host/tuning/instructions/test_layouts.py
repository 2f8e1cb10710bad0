"""Memory orders on the host: of temporaries, and which values are transposed by a copy."""

from __future__ import annotations

import numpy as np
import pytest

import tracegraph
from lowering.host.evaluation import numpy_calls
from lowering.host.evaluation.instructions import (
    Instruction,
    ReversedTemporary,
    Temporary,
    UfuncMethod,
    View,
)
from lowering.host.tuning.instructions.layout_propagation import propagate_layouts
from lowering.host.tuning.instructions.memory_orders import memory_order
from lowering.host.tuning.instructions.transposed_stores import read_stored_copies
from lowering.plan.nests.buffer import Buffer
from tests.cases.host_nests import (
    assert_same,
    copies_of,
    disjoint,
    evaluated,
    ones,
    programs_of,
    random,
    steps_of,
)
from tracegraph.ir.types import ArrayType


def centred(x):
    y = np.tanh(x)
    return y - np.mean(y, axis=0, keepdims=True)


def test_a_nest_has_its_axes_in_memory_order():
    (run,) = evaluated(centred, np.ones((512, 512), np.float32))
    large = [
        r
        for made in run.instructions
        for r in (made.output, *made.inputs)
        if isinstance(r, View | Temporary) and r.shape == (512, 512)
    ]
    assert len(large) > 2
    assert {memory_order(r) for r in large} == {None}


def test_only_copies_read_and_write_different_memory_orders():
    """A result in another order is a copy, and not what the other values are made of."""

    def function(x, y):
        z = x * y
        return z.T, z - np.mean(z, axis=0, keepdims=True)

    for made in steps_of(function, *(np.ones((300, 40), np.float32) for _ in range(2))):
        orders = {memory_order(r) for r in (*made.inputs, made.output) if r.shape == (40, 300)}
        assert len(orders) < 2 or made.function is numpy_calls.store


def test_outer_products_have_the_memory_order_of_their_store():
    def function(row, column):
        product = np.where(row > column, row, column)
        return product, np.sum(product, axis=0)

    steps = steps_of(function, np.ones((1, 900)), np.ones((50, 1)))
    large = [made.output for made in steps if made.output.shape == (50, 900)]
    assert large
    assert {memory_order(output) for output in large} == {None}


def test_outer_products_that_are_only_folded_have_the_longest_axis_innermost():
    steps = steps_of(lambda row, column: np.sum(row * column, axis=0), ones(1, 9000), ones(5, 1))
    assert [memory_order(m.output) for m in steps if m.function is np.multiply] == [(1, 0)]


@pytest.mark.parametrize("shape", [(1, 40), (40, 1), (7, 9), (600, 500)])
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


def test_a_fold_reads_a_stored_copy_with_longer_inner_loops():
    """NumPy's inner loops go along memory: here 300 elements instead of 7."""

    def function(x):
        transposed = np.roll(x.T, 1, axis=1)
        return transposed, np.max(transposed, axis=1)

    x = np.random.default_rng(0).random((300, 7))
    copy, fold = steps_of(function, x)[-2:]
    assert copy.function is numpy_calls.store
    assert isinstance(fold.function, UfuncMethod)
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


def test_calls_on_a_transposed_value_read_its_stored_copy():
    def function(x):
        transposed = np.roll(x.T, 1, axis=1)
        return transposed, transposed * 2.0, transposed * transposed

    x = np.random.default_rng(0).random((7, 2055)).astype(np.float32)
    copies = [made for made in steps_of(function, x) if made.function is numpy_calls.store]
    assert len(copies) == 1
    for found, expected in zip(
        tracegraph.jit(function, device="host")(x), function(x), strict=True
    ):
        np.testing.assert_array_equal(np.asarray(found), expected)


@pytest.mark.parametrize("disturbed", [False, True])
def test_a_value_is_stored_early_only_if_no_access_is_in_the_way(disturbed):
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
        Instruction("write", numpy_calls.store, (target(2),), value, True),
        Instruction("write", np.add, (value, value), double, True),
        Instruction("write", np.sin, (other,), Temporary(dtype, shape, dims), True),
        Instruction("write", numpy_calls.store, (double,), second, True),
        Instruction("write", numpy_calls.store, (value,), first, True),
    ]
    found = read_stored_copies(steps, disjoint)
    assert (found == steps) == disturbed
    assert disturbed or [made.output for made in found[:2]] == [value, first]


def test_a_value_with_other_readers_is_not_computed_in_the_order_of_its_store():
    """They would read across memory what a copy has in order."""

    def function(x, y):
        reversed_ = x[:, ::-1]
        return reversed_.T, np.sin(reversed_), reversed_ + y, reversed_ * y

    for made in steps_of(function, ones(73, 1541), ones(73, 1541)):
        if made.function is not numpy_calls.store:
            orders = {memory_order(r) for r in (*made.inputs, made.output)}
            assert len(orders) == 1


def test_an_argument_of_several_results_is_transposed_once():
    def function(x):
        return np.sin(x.T), np.sqrt(x.T) * 2, x.T + x.T

    assert len(copies_of(steps_of(function, ones(50, 70)))) == 1
    assert_same(function, random(50, 70))


def test_two_arguments_of_one_result_are_not_transposed():
    def function(x, y):
        return x.T * y.T + x.T

    (copy,) = copies_of(steps_of(function, ones(50, 70), ones(50, 70)))
    assert isinstance(copy.output, View)


def test_a_copy_that_a_fold_reads_serves_what_is_stored_as_well():
    """Two columns, of which the sum is taken, and each compared with it."""

    def function(x):
        y = np.maximum(x.T, -x.T)
        total = y.sum(axis=0, keepdims=True)
        return total, np.maximum(total, y)

    steps = steps_of(function, ones(7000, 2))
    (copy,) = copies_of(steps)
    assert memory_order(copy.inputs[0]) == (1, 0)
    rest = steps[steps.index(copy) + 1 :]
    assert all(memory_order(r) is None for made in rest for r in (*made.inputs, made.output))
    assert_same(function, random(7000, 2))


SHAPE, FLOAT = (40, 300), np.dtype(np.float32)


DIMS = {0: 0, 1: 1}


def place(number, strides=(1200, 4)):
    buffer = Buffer("output", number, ArrayType(FLOAT, SHAPE))
    return View(FLOAT, SHAPE, DIMS, buffer, strides, 0)


def across():
    return Temporary(FLOAT, SHAPE, DIMS, (1, 0))


@pytest.mark.parametrize("written", [0, 1])
def test_a_source_is_read_early_only_if_it_is_not_written(written):
    source, first, second = place(0, (4, 160)), across(), across()
    steps = [
        Instruction("write", np.sin, (source,), first, True),
        Instruction("write", numpy_calls.store, (first,), place(written), True),
        Instruction("write", np.cos, (source,), second, True),
        Instruction("write", numpy_calls.store, (second,), place(2), True),
    ]
    found = propagate_layouts(steps, lambda one, other: one.number == other.number)
    if written == 0:
        assert found == steps
        return
    copy, sine, _, cosine, _ = found
    assert (copy.function, copy.inputs) == (numpy_calls.store, (source,))
    assert sine.inputs == cosine.inputs == (copy.output,)
    orders = [memory_order(made.output) for made in found]
    assert orders == [None] * 5


def test_a_value_that_several_calls_combine_with_rows_is_transposed_once():
    """A comparison and a choice, of a transposed argument and one that is not."""

    def function(x, y):
        return (np.where(y < x.T, x.T * 2, y),)

    steps = steps_of(function, ones(50, 70), ones(70, 50))
    (turning,) = [made for made in steps if (1, 0) in map(memory_order, made.inputs)]
    assert turning.function is numpy_calls.store
    assert all(memory_order(made.output) is None for made in steps)
    assert_same(function, random(50, 70), 1 - random(70, 50))


@pytest.mark.parametrize("shape", [(5, 7), (600, 600)])
def test_one_transposing_call_needs_no_copy(shape):
    """As long as a copy would take, and for few elements less than another call."""
    steps = steps_of(lambda x, y: (x.T * y + 1,), ones(*shape), ones(*shape[::-1]))
    assert not copies_of(steps)
    few = steps_of(lambda x, y: (x.T * y + x.T,), ones(5, 7), ones(7, 5))
    assert not copies_of(few)


@pytest.mark.parametrize(("columns", "transposed"), [(3, True), (30, True), (70, False)])
def test_a_source_of_short_rows_is_transposed_for_calls_that_broadcast_a_row(columns, transposed):
    """An inner loop for each of 900 rows takes longer than the copy."""

    def function(x, row):
        return (np.sin(x.T * row[:, None] + row[:, None]),)

    steps = steps_of(function, ones(900, columns), ones(columns))
    orders = [memory_order(made.output) for made in steps if made.function is np.multiply]
    assert orders == [None if transposed else (1, 0)]
    assert_same(function, random(900, columns), random(columns))


def test_a_value_that_a_fold_reads_is_transposed_for_others():
    first, second, total = (across() for _ in range(3))
    steps = [
        Instruction("write", np.sin, (place(0, (4, 160)),), first, True),
        Instruction("write", numpy_calls.folded(np.add, FLOAT, (0,)), (first,), total),
        Instruction("write", np.cos, (first,), second, True),
        Instruction("write", numpy_calls.store, (first,), place(1), True),
        Instruction("write", numpy_calls.store, (second,), place(2), True),
    ]
    sine, fold, copy, cosine, *stores = propagate_layouts(steps, disjoint)
    assert (sine, fold) == (steps[0], steps[1])
    assert (copy.function, copy.inputs) == (numpy_calls.store, (first,))
    assert cosine.inputs == stores[0].inputs == (copy.output,)
    assert propagate_layouts(steps[:2] + steps[3:4], disjoint) == steps[:2] + steps[3:4]


def test_a_gathered_source_that_is_stored_is_transposed_by_that():
    gathered, double, other = (across() for _ in range(3))
    take = Instruction("write", lambda source, out: None, (place(3),), gathered)
    steps = [
        take,
        Instruction("write", np.add, (gathered, gathered), double, True),
        Instruction("write", np.multiply, (double, gathered), other, True),
        Instruction("write", numpy_calls.store, (gathered,), place(0), True),
        Instruction("write", numpy_calls.store, (other,), place(1), True),
    ]
    first, copy, *rest = propagate_layouts(steps, disjoint)
    assert first is take
    assert copy.inputs == (gathered,)
    assert all(gathered not in made.inputs for made in rest)
    assert {memory_order(r) for made in rest for r in (*made.inputs, made.output)} == {None}


def test_a_transposing_copy_becomes_the_value_itself():
    value, copy, total, double = across(), Temporary(FLOAT, SHAPE, DIMS), across(), across()
    fold = Instruction("write", numpy_calls.folded(np.add, FLOAT, (0,)), (copy,), total)
    steps = [
        Instruction("write", np.sin, (place(0, (4, 160)),), value, True),
        Instruction("write", numpy_calls.store, (value,), copy, True),
        fold,
        Instruction("write", np.add, (copy, value), double, True),
        Instruction("write", numpy_calls.store, (double,), place(1), True),
    ]
    transposed, sine, folded, doubled, _ = propagate_layouts(steps, disjoint)
    assert sine.inputs == (transposed.output,)
    assert folded.inputs == (sine.output,)
    assert doubled.inputs == (sine.output, sine.output)


def doubled(x, y):
    return x * y + y


@pytest.mark.parametrize(
    ("rows", "columns", "function", "transposed"),
    [
        (300, 3, lambda x, y: np.where(x > y, y, x * 0.5), True),
        (300, 3, np.multiply, False),  # three elements in all
        (300, 9, np.multiply, True),
        (300, 17, np.multiply, False),
        (300, 17, doubled, True),
        (300, 65, lambda x, y: np.where(x > y, y, doubled(x, y)), False),
        (1024, 16, doubled, True),
        (1024, 17, doubled, False),  # the lines of a column push out those of others
        (200, 9, doubled, False),
    ],
)
def test_outer_products_of_short_rows_are_computed_by_columns(rows, columns, function, transposed):
    def outer(x, y):
        return (function(x[:, None], y),)

    arguments = ones(rows), ones(columns)
    steps = [made for made in steps_of(outer, *arguments) if made.output.shape == (rows, columns)]
    across = [made for made in copies_of(steps) if memory_order(made.inputs[0]) == (1, 0)]
    assert len(across) == transposed
    assert_same(outer, random(rows), random(columns))


def test_a_condition_on_short_rows_compiles_without_a_store():
    def function(x, row, column):
        return (tracegraph.cond(np.any(x > row * column[:, None]), lambda: 1.0, lambda: 2.0),)

    assert_same(function, random(300, 10), random(10) + 1, random(300) + 1)
    assert_same(function, random(300, 10) + 3, random(10), random(300))


def test_a_fold_reads_a_stored_reversed_copy_with_longer_inner_loops():
    base, total = across(), Temporary(FLOAT, (40, 1), DIMS)
    seen = ReversedTemporary.of(base, frozenset({1}))
    folded = Instruction("write", numpy_calls.folded(np.add, FLOAT, (1,)), (base,), total)
    store = Instruction("write", numpy_calls.store, (seen,), place(0), True)
    copy, fold = read_stored_copies([folded, store], disjoint)
    assert copy is store
    assert fold.inputs == (store.output,)
    partly = ReversedTemporary.of(base, frozenset({0, 1}))  # a fold of this is another's
    steps = [folded, Instruction("write", numpy_calls.store, (partly,), place(0), True)]
    assert read_stored_copies(steps, disjoint) == steps
