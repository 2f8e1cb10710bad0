"""Negative-stride normalisation on the host: which calls read reversed views, which a copy."""

from __future__ import annotations

import numpy as np
import pytest

import tracegraph
from lowering.host.evaluation import numpy_calls
from lowering.host.evaluation.instructions import (
    DynamicView,
    Instruction,
    ReversedTemporary,
    Temporary,
    UfuncMethod,
    View,
)
from lowering.host.tuning.instructions.memory_orders import negative_dims
from lowering.host.tuning.instructions.reversed_chains import count_reversals
from lowering.host.tuning.instructions.reversed_views import copy_reversed
from lowering.plan.nests.buffer import Buffer
from tests.cases.host_nests import assert_same, copies_of, disjoint, ones, random, steps_of
from tracegraph.ir.types import ArrayType


def test_calls_vectorised_for_positive_strides_only_read_a_copy():
    steps = steps_of(lambda x: np.sin(x[:, ::-1]) + x, np.ones((20, 30), np.float32))
    assert steps[0].function is numpy_calls.store
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
def test_folds_read_positive_strides(fold, strides):
    x = np.random.default_rng(0).random((30, 20), np.float32)
    (made,) = [made for made in steps_of(fold, x) if isinstance(made.function, UfuncMethod)]
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
def test_gathered_rows_are_reversed_once_for_several_readers(function, copies):
    x, y = np.random.default_rng(1).random((2, 4, 60))
    y = y[[0] * len(INDEX)]
    steps = steps_of(function, x, y)
    copied = [made.inputs[0] for made in steps if made.function is numpy_calls.store]
    turned = [
        r for r in copied if isinstance(r, ReversedTemporary) or min(r.strides, default=0) < 0
    ]
    assert len(turned) == copies
    found, wanted = tracegraph.jit(function, device="host")(x, y), function(x, y)
    for each, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(each, other)


def test_a_reversed_temporary_is_copied_once_for_several_readers():
    base = Temporary(np.dtype(np.float64), (300,), {0: 0})
    seen = ReversedTemporary.of(base, frozenset({0}))
    made = Instruction("write", np.sin, (base,), base)
    out = [Temporary(base.dtype, base.shape, base.dims) for _ in range(2)]
    reads = [Instruction("write", np.add, (seen, seen), each) for each in out]
    assert copy_reversed([made, reads[0]], disjoint) == [made, reads[0]]
    first, copy, *rest = copy_reversed([made, *reads], disjoint)
    assert (first, copy.function, copy.inputs) == (made, numpy_calls.store, (seen,))
    assert [each.inputs for each in rest] == [(copy.output, copy.output)] * 2


@pytest.mark.parametrize("reads", [1, 2])
def test_a_reversed_view_that_several_calls_read_is_copied(reads):
    def function(x, y):
        reversed_ = x[::-1]
        return (reversed_ + y, reversed_ * y)[:reads]

    steps = steps_of(function, ones(900), ones(900))
    assert sum(made.function is numpy_calls.store for made in steps) == (reads > 1)


def test_a_reversed_view_that_is_written_between_its_readers_is_not_copied():
    output = Temporary(np.dtype(float), (900,), {0: 0})
    buffer = Buffer("scratch", 0, ArrayType(np.dtype(float), (900,)))
    back = View(output.dtype, (900,), {0: 0}, buffer, (-8,), 8 * 899)
    whole = View(output.dtype, (900,), {0: 0}, buffer, (8,), 0)
    reads = [Instruction("write", np.sin, (back,), output) for _ in range(2)]
    store = Instruction("write", numpy_calls.store, (output,), whole)
    assert copy_reversed([reads[0], store, reads[1]], disjoint) == [reads[0], store, reads[1]]
    assert len(copy_reversed([*reads, store], disjoint)) == 4


def chain_on_reversed_views(x, y):
    x, y = x[::-1], y[::-1]
    return np.tanh(x * y - x) + y


@pytest.mark.parametrize("shape", [(900,), (30, 40)])
def test_chains_on_reversed_views_run_in_memory_order(shape):
    """Only their result is read from the last element to the first."""
    steps = steps_of(chain_on_reversed_views, ones(*shape), ones(*shape))
    for made in steps[:-1]:
        views = [r for r in made.inputs if isinstance(r, View)]
        assert all(stride > 0 for view in views for stride in view.strides)
    assert steps[-1].function is numpy_calls.store
    assert isinstance(steps[-1].inputs[0], ReversedTemporary)
    assert count_reversals(steps) == 1


def test_one_call_on_a_reversed_view_needs_no_copy():
    (made,) = steps_of(lambda x: x[::-1] * 2.0, ones(900))
    assert made.function is np.multiply


@pytest.mark.parametrize("shape", [(3,), (900,), (30, 40), (600, 500), (1 << 17, 2)])
def test_results_do_not_depend_on_direction(shape):
    rng = np.random.default_rng(0)
    x, y = (rng.random(shape, np.float32) for _ in range(2))

    def function(x, y):
        chained = chain_on_reversed_views(x, y)
        partly = chain_on_reversed_views(x[..., ::-1], y[..., ::-1]) * x
        return chained, partly, np.where(x[::-1] > y[::-1], chained, x[::-1]) - 1

    found = tracegraph.jit(function, device="host")(x, y)
    for array, expected in zip(found, function(x, y), strict=True):
        np.testing.assert_array_equal(np.asarray(array), expected)


def test_a_reversed_dynamic_view_is_copied_for_calls_that_need_positive_strides():
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


def test_a_reversed_view_of_a_selection_and_its_predicate_is_copied_once():
    def function(x, y):
        reversed_ = x[::-1, ::-1]
        return (np.where(reversed_ > y, reversed_, y * 0.5),)

    copies = [made for made in steps_of(function, ones(40, 90), ones(40, 90)) if made.inputs]
    against = [made for made in copies if any(map(negative_dims, made.inputs))]
    assert [made.function for made in against] == [numpy_calls.store]
    assert_same(function, random(40, 90), 1 - random(40, 90))


def test_one_copy_reverses_and_transposes():
    def function(x):
        return ((np.flip(x) - 1).T,)

    (call,) = [made for made in steps_of(function, ones(50, 90)) if made.function is np.subtract]
    assert not any(map(negative_dims, call.inputs))
    assert_same(function, random(50, 90))
