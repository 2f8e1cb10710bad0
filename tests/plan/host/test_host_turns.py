"""What is copied on the host so that no call reads against the grain, and how often."""

from __future__ import annotations

import numpy as np
import pytest
from host_cases import block_length, disjoint, ones, programs_of, steps_of

import tracegraph
from lowering.host import numpy_calls as functions
from lowering.host.instructions import (
    DynamicView,
    Instruction,
    ReversedTemporary,
    Temporary,
    View,
)
from lowering.host.tuning.blocking import GATHERED_BYTES
from lowering.host.tuning.layout_propagation import propagate_layouts
from lowering.host.tuning.memory_orders import memory_order, negative_dims
from lowering.host.tuning.transposed_stores import read_stored_copies
from lowering.plan.buffer import Buffer
from tracegraph.ir.types import ArrayType


def assert_same(function, *arguments):
    found, wanted = tracegraph.jit(function, device="host")(*arguments), function(*arguments)
    for array, expected in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(np.asarray(array), expected)


def copies_of(steps):
    return [made for made in steps if made.function is functions.store]


def random(*shape):
    return np.random.default_rng(len(shape)).random(shape, np.float32)


# -- sources that are turned -------------------------------------------------------------------


def test_a_transposed_argument_of_several_results_is_turned_once():
    def function(x):
        return np.sin(x.T), np.sqrt(x.T) * 2, x.T + x.T

    assert len(copies_of(steps_of(function, ones(50, 70)))) == 1
    assert_same(function, random(50, 70))


def test_two_transposed_arguments_of_one_result_are_not_turned():
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
def test_a_source_is_read_early_only_if_it_stays_as_it_is(written):
    source, first, second = place(0, (4, 160)), across(), across()
    steps = [
        Instruction("write", np.sin, (source,), first, True),
        Instruction("write", functions.store, (first,), place(written), True),
        Instruction("write", np.cos, (source,), second, True),
        Instruction("write", functions.store, (second,), place(2), True),
    ]
    found = propagate_layouts(steps, lambda one, other: one.number == other.number)
    if written == 0:
        assert found == steps
        return
    copy, sine, _, cosine, _ = found
    assert (copy.function, copy.inputs) == (functions.store, (source,))
    assert sine.inputs == cosine.inputs == (copy.output,)
    orders = [memory_order(made.output) for made in found]
    assert orders == [None] * 5


def test_what_several_calls_read_beside_rows_is_turned_once():
    """A comparison and a choice, of a transposed argument and one that is not."""

    def function(x, y):
        return (np.where(y < x.T, x.T * 2, y),)

    steps = steps_of(function, ones(50, 70), ones(70, 50))
    (turning,) = [made for made in steps if (1, 0) in map(memory_order, made.inputs)]
    assert turning.function is functions.store
    assert all(memory_order(made.output) is None for made in steps)
    assert_same(function, random(50, 70), 1 - random(70, 50))


@pytest.mark.parametrize("shape", [(5, 7), (600, 600)])
def test_one_call_reads_across_by_itself(shape):
    """As long as a copy would take, and for few elements less than another call."""
    steps = steps_of(lambda x, y: (x.T * y + 1,), ones(*shape), ones(*shape[::-1]))
    assert not copies_of(steps)
    few = steps_of(lambda x, y: (x.T * y + x.T,), ones(5, 7), ones(7, 5))
    assert not copies_of(few)


@pytest.mark.parametrize(("columns", "turned"), [(3, True), (30, True), (70, False)])
def test_a_source_of_short_rows_is_turned_for_what_is_made_of_it_and_a_row(columns, turned):
    """An inner loop for each of 900 rows takes longer than the copy."""

    def function(x, row):
        return (np.sin(x.T * row[:, None] + row[:, None]),)

    steps = steps_of(function, ones(900, columns), ones(columns))
    orders = [memory_order(made.output) for made in steps if made.function is np.multiply]
    assert orders == [None if turned else (1, 0)]
    assert_same(function, random(900, columns), random(columns))


def test_a_value_that_a_fold_reads_is_turned_for_others():
    first, second, total = (across() for _ in range(3))
    steps = [
        Instruction("write", np.sin, (place(0, (4, 160)),), first, True),
        Instruction("write", functions.folded(np.add, FLOAT, (0,)), (first,), total),
        Instruction("write", np.cos, (first,), second, True),
        Instruction("write", functions.store, (first,), place(1), True),
        Instruction("write", functions.store, (second,), place(2), True),
    ]
    sine, fold, copy, cosine, *stores = propagate_layouts(steps, disjoint)
    assert (sine, fold) == (steps[0], steps[1])
    assert (copy.function, copy.inputs) == (functions.store, (first,))
    assert cosine.inputs == stores[0].inputs == (copy.output,)
    assert propagate_layouts(steps[:2] + steps[3:4], disjoint) == steps[:2] + steps[3:4]


def test_a_gathered_source_that_is_stored_itself_is_turned_by_that():
    gathered, double, other = (across() for _ in range(3))
    take = Instruction("write", lambda source, out: None, (place(3),), gathered)
    steps = [
        take,
        Instruction("write", np.add, (gathered, gathered), double, True),
        Instruction("write", np.multiply, (double, gathered), other, True),
        Instruction("write", functions.store, (gathered,), place(0), True),
        Instruction("write", functions.store, (other,), place(1), True),
    ]
    first, copy, *rest = propagate_layouts(steps, disjoint)
    assert first is take
    assert copy.inputs == (gathered,)
    assert all(gathered not in made.inputs for made in rest)
    assert {memory_order(r) for made in rest for r in (*made.inputs, made.output)} == {None}


def test_a_copy_to_be_read_is_the_turned_value_itself():
    value, copy, total, double = across(), Temporary(FLOAT, SHAPE, DIMS), across(), across()
    fold = Instruction("write", functions.folded(np.add, FLOAT, (0,)), (copy,), total)
    steps = [
        Instruction("write", np.sin, (place(0, (4, 160)),), value, True),
        Instruction("write", functions.store, (value,), copy, True),
        fold,
        Instruction("write", np.add, (copy, value), double, True),
        Instruction("write", functions.store, (double,), place(1), True),
    ]
    turned, sine, folded, doubled, _ = propagate_layouts(steps, disjoint)
    assert sine.inputs == (turned.output,)
    assert folded.inputs == (sine.output,)
    assert doubled.inputs == (sine.output, sine.output)


def doubled(x, y):
    return x * y + y


@pytest.mark.parametrize(
    ("rows", "columns", "function", "turned"),
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
def test_short_rows_made_of_rows_and_columns_alone_are_made_by_columns(
    rows, columns, function, turned
):
    def outer(x, y):
        return (function(x[:, None], y),)

    arguments = ones(rows), ones(columns)
    steps = [made for made in steps_of(outer, *arguments) if made.output.shape == (rows, columns)]
    across = [made for made in copies_of(steps) if memory_order(made.inputs[0]) == (1, 0)]
    assert len(across) == turned
    assert_same(outer, random(rows), random(columns))


def test_a_condition_on_short_rows_stores_nothing_that_would_have_to_be_turned():
    def function(x, row, column):
        return (tracegraph.cond(np.any(x > row * column[:, None]), lambda: 1.0, lambda: 2.0),)

    assert_same(function, random(300, 10), random(10) + 1, random(300) + 1)
    assert_same(function, random(300, 10) + 3, random(10), random(300))


# -- reversed views ----------------------------------------------------------------------------


def test_a_window_that_is_found_late_is_turned_for_what_is_vectorised_forwards_alone():
    """Of the element of a reversed row that an index picks, all that lie beside it are a view."""

    def function(x, i):
        row = np.flip(x)[i]
        return np.tanh(row), row + 1

    arguments = ones(3, 900), np.array([2])
    steps = steps_of(function, *arguments)
    (window,) = [made.output for made in steps if isinstance(made.output, DynamicView)]
    assert negative_dims(window)
    (copy,) = [made for made in copies_of(steps) if made.inputs == (window,)]
    readers = [made for made in steps if copy.output in made.inputs]
    assert [made.function for made in readers] == [np.tanh, np.add]
    assert all(window not in made.inputs for made in steps if made is not copy)
    assert_same(function, random(3, 900), np.array([-1]))


def test_a_reversed_view_of_a_choice_and_its_condition_is_copied_once():
    def function(x, y):
        reversed_ = x[::-1, ::-1]
        return (np.where(reversed_ > y, reversed_, y * 0.5),)

    copies = [made for made in steps_of(function, ones(40, 90), ones(40, 90)) if made.inputs]
    against = [made for made in copies if any(map(negative_dims, made.inputs))]
    assert [made.function for made in against] == [functions.store]
    assert_same(function, random(40, 90), 1 - random(40, 90))


def test_a_fold_reads_the_reversed_copy_that_is_stored_if_its_runs_are_longer():
    base, total = across(), Temporary(FLOAT, (40, 1), DIMS)
    seen = ReversedTemporary.of(base, frozenset({1}))
    folded = Instruction("write", functions.folded(np.add, FLOAT, (1,)), (base,), total)
    store = Instruction("write", functions.store, (seen,), place(0), True)
    copy, fold = read_stored_copies([folded, store], disjoint)
    assert copy is store
    assert fold.inputs == (store.output,)
    partly = ReversedTemporary.of(base, frozenset({0, 1}))  # a fold of this is another's
    steps = [folded, Instruction("write", functions.store, (partly,), place(0), True)]
    assert read_stored_copies(steps, disjoint) == steps


def test_what_is_reversed_and_transposed_is_turned_round_by_the_copy_that_transposes_it():
    def function(x):
        return ((np.flip(x) - 1).T,)

    (call,) = [made for made in steps_of(function, ones(50, 90)) if made.function is np.subtract]
    assert not any(map(negative_dims, call.inputs))
    assert_same(function, random(50, 90))


# -- positions ---------------------------------------------------------------------------------


def takes(made, size):
    """Whether it gathers so many elements."""
    source, *positions = made.inputs
    return len(positions) == 1 and not source.dims and np.prod(positions[0].shape) == size


def test_elements_are_gathered_in_the_order_of_their_positions():
    def function(x, i, y):
        return (x.reshape(-1)[i].T + y,)

    x, y = random(22, 478), random(478, 22)
    i = np.random.default_rng(0).integers(-22 * 478, 22 * 478, (22, 478))
    (take,) = [made for made in steps_of(function, x, i, y) if takes(made, i.size)]
    assert memory_order(take.inputs[1]) == memory_order(take.output) == (1, 0)
    assert_same(function, x, i, y)


@pytest.mark.parametrize("permutation", [(0, 1, 2), (2, 1, 0), (1, 2, 0), (0, 2, 1)])
def test_rows_are_gathered_at_positions_of_any_order(permutation):
    def function(x, i):
        return (x[i.transpose(permutation)] + 1,)

    x, i = random(9, 6), np.random.default_rng(1).integers(-9, 9, (3, 4, 5))
    assert_same(function, x, i)


@pytest.mark.parametrize("rows", [20, 90])
def test_large_remainders_are_found_by_way_of_the_quotients(rows):
    """Rows and columns of positions in a transposed array are quotients and remainders."""

    def function(x, i):
        return (x.T.reshape(-1)[i],)

    x, i = random(rows, 70), np.random.default_rng(2).integers(-70 * rows, 70 * rows, 70 * rows)
    steps = steps_of(function, x, i)
    divided = [made.function for made in steps if made.function in (np.remainder, np.floor_divide)]
    expected = {np.floor_divide} if rows == 90 else {np.floor_divide, np.remainder}
    assert (set(divided), len(divided)) == (expected, len(expected))
    assert_same(function, x, i)


@pytest.mark.parametrize("arrays", [1, 2])
def test_elements_of_several_large_arrays_are_not_gathered_by_turns(arrays):
    """In blocks, each would have to come into the cache again for every one of them."""

    def function(i, x, y):
        found = [source[i] for source in (x, y)[:arrays]]
        return [np.sin(each * 2) + 1 for each in found]

    size = GATHERED_BYTES // 8
    arguments = np.zeros(size, np.int64), ones(size), ones(size)
    (program,) = programs_of(function, *arguments)
    assert (block_length(program) is None) == (arrays == 2)
