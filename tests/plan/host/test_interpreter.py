"""Functions on the host: what they compute, and what they keep."""

from __future__ import annotations

import gc
import sys
import weakref

import numpy as np
import pytest

import tracegraph
from lowering.host.executable import HostExecutable
from lowering.plan.nests.kernel import MapNest, Store
from tests.cases.host_nests import F64, ap, axes, buffer, run
from tracegraph.ir.scalar import const, select
from tracegraph.ir.scalar_values import Load, as_index

X = np.linspace(0.0, 1.0, 12).reshape(3, 4)


def test_what_a_switch_makes_others_may_read():
    def numbered(n, x):
        y = tracegraph.switch(n, [np.sin, np.cos, lambda x: x * 2.0], x)
        return y, y[::-1] + y

    f = tracegraph.jit(numbered, device="host")
    for n in range(3):
        for found, wanted in zip(f(np.int64(n), X[0]), numbered(n, X[0]), strict=True):
            np.testing.assert_array_equal(np.asarray(found), wanted)


def test_a_result_that_is_also_a_condition_is_stored():
    def function(x):
        small = np.sum(x) < 0.5
        return small, tracegraph.cond(small, np.sin, np.cos, x)

    for x in (X[0] - 1, X[0]):
        found = tracegraph.jit(function, device="host")(x)
        assert bool(found[0]) == (np.sum(x) < 0.5)
        np.testing.assert_array_equal(found[1], np.sin(x) if found[0] else np.cos(x))


def test_integers_that_leave_their_range_in_a_loop_wrap_round():
    def powers(p):
        return tracegraph.fori_loop(0, 50, lambda i, p: p * 3 - i, p)

    for dtype in (np.int8, np.uint32, np.int64):
        with np.errstate(over="ignore"):
            wanted = powers(dtype(7))
            found = tracegraph.jit(powers, device="host")(np.full((), 7, dtype))
        assert found.dtype == wanted.dtype
        assert int(found) == int(wanted)


def test_quotients_by_zero_are_numpys():
    def ratio(x, y):
        return tracegraph.while_loop(
            lambda s: s[2] < 1, lambda s: (s[0] / y, y, s[2] + 1), (x, y, 0)
        )

    f = tracegraph.jit(ratio, device="host")
    for x, wanted in ((1.0, np.inf), (-1.0, -np.inf), (0.0, np.nan)):
        for dtype in (np.float32, np.float64):
            np.testing.assert_array_equal(np.asarray(f(dtype(x), dtype(0))[0]), dtype(wanted))


def test_constructs_deeper_than_python_allows():
    def deep(level):
        if not level:
            return lambda x: x + 1
        inner = deep(level - 1)
        if level % 2:
            return lambda x: tracegraph.cond(x.sum() < 1e9, inner, lambda y: y * 0, x)
        return lambda x: tracegraph.fori_loop(0, 1, lambda _, y: inner(y), x)

    f = tracegraph.jit(deep(24), device="host")
    np.testing.assert_array_equal(np.asarray(f(np.ones(2))), np.full(2, 2.0))


def test_arguments_that_are_not_contiguous_are_copied():
    f = tracegraph.jit(lambda x, y: x * 2 + (y * y).sum(), device="host")
    x, y = X.T, X[1:]
    np.testing.assert_array_equal(np.asarray(f(x, y)), x * 2 + (y * y).sum())
    assert f.stats()["bytes_copied"] == x.nbytes


def test_results_are_row_major_whatever_the_arguments_are():
    double = tracegraph.jit(lambda x: x * 2, device="host")
    for x in (X, X.T, X[:, ::-1], X[0], X[0, ::-2]):
        assert np.asarray(double(x)).flags.c_contiguous
    transposed = tracegraph.jit(lambda x: x.T + 1, device="host")(X)
    assert np.asarray(transposed).flags.c_contiguous


def test_what_a_function_was_made_for_is_freed_with_it():
    data = np.ones(1000)
    executable = HostExecutable(
        tracegraph.jit(lambda x: np.sin(x) @ (x * 2) + x, device="host").lower(data).plan
    )
    executable([data])
    gc.disable()
    try:
        body = weakref.ref(executable._running.body)
        executable.close()
        if not getattr(sys, "_is_gil_enabled", lambda: True)():
            gc.collect()  # without the GIL, functions wait for it
        assert body() is None
    finally:
        gc.enable()


def test_nothing_of_a_call_is_kept():
    f = tracegraph.jit(lambda x: x[1:] + x[:-1], device="host")
    x = np.ones(1000)
    result = f(x)
    refs = [weakref.ref(x), weakref.ref(result)]
    del x, result
    assert [ref() for ref in refs] == [None, None]


def test_a_chain_that_ends_in_some_elements_leaves_the_others_alone():
    source, out = buffer("input", 0, 8), buffer("output", 0, 8)
    (i,) = axes(8)
    at = Load.make(source, (i,), None)
    fill = MapNest((8,), (Store(out, (i,), const(-1.0, F64)),))
    guard = as_index(ap("remainder", at, const(3.0, F64))) < 1
    some = MapNest((8,), (Store(out, (i,), ap("sin", ap("multiply", at, at)), guard),))
    x = np.arange(8.0)
    (found,) = run([fill, some], (source,), (out,), [x])
    np.testing.assert_array_equal(found, np.where(x % 3 == 0, np.sin(x * x), -1))


def test_a_chain_works_in_its_buffer_only_while_no_other_reads_there():
    a, b = buffer("scratch", 0, 8), buffer("scratch", 1, 8)
    source, out = buffer("input", 0, 8), buffer("output", 0, 8)
    (i,) = axes(8)
    at = Load.make(a, (i,), None)
    chain = ap("add", ap("sin", ap("multiply", Load.make(source, (i,), None), at)), at)
    nests = [
        MapNest((8,), (Store(a, (i,), ap("add", Load.make(source, (i,), None), const(1.0, F64))),)),
        MapNest((8,), (Store(b, (i,), chain),)),
        MapNest((8,), (Store(out, (i,), Load.make(b, (i,), None)),)),
    ]
    x = np.arange(8.0)
    (found,) = run(nests, (source,), (out,), [x], offsets={a: 0, b: 0})
    np.testing.assert_array_equal(found, np.sin(x * (x + 1)) + (x + 1))


@pytest.mark.parametrize("shape", [(40, 30), (5, 40, 30)])
def test_windows_of_rows_are_run_as_ranges(shape):
    """Rolls cut a space in parts; the largest is computed with what lies between its rows."""

    def spread(x):
        around = sum(np.roll(x, d, axis) for axis in range(x.ndim) for d in (1, -1))
        return np.where(x > 0, around - 4 * x, np.exp(x))

    x = np.random.default_rng(0).standard_normal(shape)
    found = tracegraph.jit(spread, device="host")(x)
    np.testing.assert_array_equal(np.asarray(found), spread(x))


def test_a_window_whose_surroundings_are_read_is_not_run_as_a_range():
    """The nest stores where it reads: what is around the window is still needed."""
    u, out, source = (
        buffer("scratch", 0, 8, 40),
        buffer("output", 0, 8, 40),
        buffer("input", 0, 8, 40),
    )
    i, j = axes(8, 40)
    at = Load.make(u, (i, j), None)
    inner = select(j < 1, const(False, np.dtype(bool)), j < 39)
    value = select(inner, ap("multiply", at, const(2.0, F64)), at)
    nests = [
        MapNest((8, 40), (Store(u, (i, j), Load.make(source, (i, j), None)),)),
        MapNest((8, 40), (Store(u, (i, j), value),)),
        MapNest((8, 40), (Store(out, (i, j), at),)),
    ]
    x = np.random.default_rng(1).standard_normal((8, 40))
    (found,) = run(nests, (source,), (out,), [x], scratch=(u,))
    expected = x.copy()
    expected[:, 1:39] *= 2
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("dtype", ["float32", "int64", "bool"])
def test_a_roll_to_the_same_place_in_other_pages_moves_every_element(dtype):
    """Such copies are done otherwise: the arrays are of some pages each, one behind the other."""

    def function(x):
        def step(_, pair):
            one, _ = pair
            return np.roll(one, 1), one

        one, other = tracegraph.fori_loop(0, 3, step, (x, x))
        return one, other

    x = (np.arange(8192) % 7).astype(dtype)
    found = tracegraph.jit(function, device="host")(x)
    np.testing.assert_array_equal(found[0], np.roll(x, 3))
    np.testing.assert_array_equal(found[1], np.roll(x, 2))
