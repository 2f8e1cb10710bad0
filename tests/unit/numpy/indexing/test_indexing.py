"""Indexing of traced arrays, for reading and writing, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import integer_array_indices

import tracegraph
import tracegraph.numpy as tnp
from tests.helpers.traced import assert_traced_equals_eager, trace
from tracegraph import errors
from tracegraph.ir import interpret
from tracegraph.ir.program import walk

X = np.arange(60.0).reshape(3, 4, 5)
MASK = X[:, :, 0] % 2 == 0
s_ = np.s_

INDICES = [
    s_[0], s_[-1], s_[1, 2, 3], s_[...], s_[()], s_[:], s_[1:], s_[::-1], s_[::2, 1:-1, ::-2],
    s_[2:0:-1], s_[5:], s_[1:1], s_[..., 0], s_[0, ..., 1], s_[None], s_[:, None, 1], s_[..., None],
    s_[None, 0, None, :, None], s_[[0, 2]], s_[[0, -1, 0]], s_[:, [1, 0]], s_[[0, 1], [1, 2]],
    s_[[0, 1], :, [1, 2]], s_[0, :, [1, 2]], s_[:, 0, [1, 2]], s_[0, [1, 2]],
    s_[[[0], [1]], [2, 3]],
    s_[..., [0, 1]], s_[[0, 1], ..., [3]], s_[[0], ..., 2], s_[[0, 1], None, [2, 3]],
    s_[None, [0, 1], 1:3], s_[1:, [0, 1], None, ::2], s_[[]], s_[np.array([], int), 1],
    s_[np.int8(1)], s_[np.array(2)], s_[np.array([1, 2], np.uint8)], s_[MASK], s_[~MASK, 1],
    s_[X > 30], s_[[True, False, True]], s_[:, [True, False, True, True], 0],
    s_[:, np.arange(4)[:, None], np.arange(5)], s_[0, :, None, [1, 2], ...],
    s_[:, 0, [1, 2], ...], s_[:, [0, 1], [2, 2], ...],
]  # fmt: skip


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_reads_equal_numpys(index: Any) -> None:
    assert_traced_equals_eager(lambda x: x[index], X)


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_writes_equal_numpys(index: Any) -> None:
    shape = X[index].shape

    def f(x: Any, row: Any) -> Any:
        y = x.copy()
        y[index] = -1
        z = x.copy()
        z[index] = np.arange(float(np.prod(shape))).reshape(shape) * row
        z[index] += 3
        return y, z

    assert_traced_equals_eager(f, X, 2.0)


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_functional_updates_equal_ufunc_at(index: Any) -> None:
    def eager(x: np.ndarray) -> Any:
        results = []
        for ufunc, value in ((np.add, 2), (np.multiply, 3), (np.minimum, 7), (np.maximum, 40)):
            y = x.copy()
            ufunc.at(y, index, value)
            results.append(y)
        return results

    program = trace(
        lambda x: [
            x.at[index].add(2), x.at[index].multiply(3), x.at[index].min(7), x.at[index].max(40),
        ],
        X,
    )  # fmt: skip
    for got, wanted in zip(interpret.run(program, X), eager(X), strict=True):
        np.testing.assert_array_equal(got, wanted)


SLICES = st.builds(
    slice, *[st.none() | st.integers(-6, 6)] * 2, st.sampled_from([None, 1, 2, -1, -3])
)


@st.composite
def mixed_indices(draw: st.DrawFn) -> tuple[Any, ...]:
    """Integers, slices, new axes, an ellipsis and index arrays for an array of shape (3, 4, 5)."""
    batch = draw(st.sampled_from([(2,), (3, 2)]))
    entries: list[Any] = []
    axis, ellipsis = 0, False
    while axis < 3:
        kind = draw(st.sampled_from(["int", "slice", "new", "ellipsis", "array", "array", "stop"]))
        extent = X.shape[axis]
        if kind == "stop":
            break
        if kind == "new":
            entries.append(None)
            if len(entries) > 6:
                break
        elif kind == "ellipsis" and not ellipsis:
            ellipsis = True
            skipped = draw(st.integers(0, 3 - axis))
            entries.append(Ellipsis)
            axis += skipped
            if skipped != 0 and axis < 3:  # what follows must reach the last axis
                entries += [draw(st.integers(-1, 1)) for _ in range(3 - axis)]
            break
        elif kind == "int":
            entries.append(draw(st.integers(-extent, extent - 1)))
            axis += 1
        elif kind == "slice":
            entries.append(draw(SLICES))
            axis += 1
        elif kind == "array":
            shape = draw(st.sampled_from([batch, batch[-1:], (1,)]))
            size = int(np.prod(shape))
            values = draw(st.lists(st.integers(-extent, extent - 1), min_size=size, max_size=size))
            entries.append(np.array(values).reshape(shape))
            axis += 1
    return tuple(entries)


@settings(max_examples=60, deadline=None)
@given(mixed_indices())
def test_mixtures_of_all_kinds_equal_numpys(index: tuple[Any, ...]) -> None:
    def f(x: Any) -> Any:
        y = x.copy()
        y[index] = np.arange(float(x[index].size)).reshape(x[index].shape)
        return x[index], y

    assert_traced_equals_eager(f, X)


@settings(max_examples=50, deadline=None)
@given(integer_array_indices((3, 4)), st.booleans())
def test_index_arrays_may_be_traced(index: tuple[Any, ...], both: bool) -> None:
    def f(x: Any, i: Any, j: Any) -> Any:
        y = x.copy()
        y[i, j if both else index[1]] = 5
        np.add.at(y, (i, j), 1)
        return x[i, j if both else index[1]], x[i], x[:, j], y

    assert_traced_equals_eager(f, X[:, :, 0], *(np.asarray(a) for a in index))


@pytest.mark.parametrize("i", [0, 2, -1, -3])
def test_a_traced_integer_is_an_integer(i: int) -> None:
    def f(x: Any, i: Any) -> Any:
        y = x.copy()
        row = y[i]
        y[i] += 10
        y[i, 1:] = 0
        row[0] -= 5
        return x[i], x[i, 0], x[:, i], x[..., i, None], x[i, [0, 1]], y, row, x[1:, i, ::-1]

    assert_traced_equals_eager(f, X, np.int32(i))


def test_a_traced_integer_out_of_range_clamps_for_reads_and_drops_writes() -> None:
    def f(x: Any, i: Any) -> Any:
        y = x.copy()
        y[i] = -1
        return x[i], y

    program = trace(f, np.arange(4.0), 0)
    for i, read in ((7, 3.0), (-9, 0.0)):
        got, written = interpret.run(program, np.arange(4.0), np.int64(i))
        assert got == read
        np.testing.assert_array_equal(written, np.arange(4.0))


def test_a_basic_read_is_one_slice_and_a_write_is_one_scatter() -> None:
    def f(x: Any) -> Any:
        y = x * 2
        y[1:, 2] += 1
        return y

    names = [eqn.op.name for eqn in walk(trace(f, X).body)]
    assert names.count("scatter_set") == 1
    assert [eqn.op.name for eqn in walk(trace(lambda x: x[1:2], X).body)] == ["slice"]


@pytest.mark.parametrize(
    ("index", "message"),
    [
        (3, "index 3 is out of bounds for axis 0 with size 3"),
        (s_[0, -5], "index -5 is out of bounds for axis 1 with size 4"),
        (s_[[0, 3]], "index 3 is out of bounds for axis 0"),
        (s_[0, 0, 0, 0], "3-dimensional, but 4 were indexed"),
        (s_[..., 0, ...], "single ellipsis"),
        (s_[1.0], "float"),
        (s_[np.array([1.0])], "float64"),
        (s_["a"], "str"),
        (s_[[0, 1], [0, 1, 2]], r"shapes \(2,\) \(3,\)"),
        (s_[[True, False]], "boolean index did not match"),
    ],
)
def test_wrong_indices_raise_index_errors(index: Any, message: str) -> None:
    with pytest.raises(IndexError, match=message):
        trace(lambda x: x[index], X)
    with pytest.raises(IndexError, match=message):
        trace(lambda x: x.at[index].set(0), X)
    with pytest.raises(IndexError):  # NumPy refuses as well
        X[index]


def test_values_must_fit() -> None:
    with pytest.raises(ValueError, match=r"shape \(3,\) into the indexed shape \(4, 5\)"):
        trace(lambda x: x.at[0].set(np.arange(3)), X)


def test_traced_masks_write_where_the_shape_is_known() -> None:
    def f(x: Any, value: Any) -> Any:
        y = x.copy()
        y[y > 30] = 0
        y[x[:, :, 0] > 20] = value
        y[x < 10] = 2.5
        return y

    assert_traced_equals_eager(f, X, np.arange(5.0))


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x[x > 1],
        lambda x: x[0, x[0] > 1],
        lambda x: x.at[x > 1].set(np.arange(3.0)),
        lambda x: x.at[[0, 1], x[0] > 1].set(1),
        lambda x: x.at[:, x[0, :, 0] > 1].set(np.ones((3, 2, 5))),
        lambda x: x.at[0, :, x[0, 0] > 1].set(np.ones((2, 4))),
    ],
)
def test_traced_masks_whose_count_matters_are_refused(call: Any) -> None:
    with pytest.raises(errors.BooleanMaskError, match=r"numpy\.where") as caught:
        trace(call, X)
    assert isinstance(caught.value, TypeError)
    assert isinstance(caught.value, IndexError)


@pytest.mark.parametrize(
    ("index", "value"),
    [
        (lambda m: s_[0, m[0]], 7),
        (lambda m: s_[:, m[0, :, 0]], 7),
        (lambda m: s_[:, m[0, :, 0]], np.arange(5.0)),
        (lambda m: s_[:, m[0, :, 0]], np.arange(3.0).reshape(3, 1, 1)),
        (lambda m: s_[1:, m[0]], np.arange(2.0)[:, None]),
        (lambda m: s_[..., m[0, 0]], 7),
        (lambda m: s_[..., m[0]], np.arange(3.0)[:, None]),
        (lambda m: s_[0, ..., m[0, 0]], 7),
        (lambda m: s_[0, :, m[0, 0]], 7),
        (lambda m: s_[-1, 1, m[0, 0]], 7),
        (lambda m: s_[m[:, 0, 0], 1], np.arange(5.0)),
        (lambda m: s_[m[:, :, 0], ::-2], np.arange(3.0)),
        (lambda m: s_[m[:, 0, 0], :, 2], 7),
        (lambda m: s_[None, m], 7),
        (lambda m: s_[m, ...], 7),
        (lambda m: s_[::2, m[0, :, 0], 1:3], np.arange(2.0)),
        (lambda m: s_[m[0, 0, 0]], 7),
    ],
)
def test_traced_masks_beside_integers_and_slices(index: Any, value: Any) -> None:
    def f(x: Any, m: Any) -> Any:
        y = x.copy()
        y[index(m)] = value
        return y

    assert_traced_equals_eager(f, X, X % 3 == 0)
    added = trace(lambda x, m: x.at[index(m)].add(value), X, X % 3 == 0)
    wanted = X.copy()
    wanted[index(X % 3 == 0)] += value
    np.testing.assert_array_equal(interpret.run(added, X, X % 3 == 0)[0], wanted)


@pytest.mark.parametrize("shape", [(0,), (0, 4), (3, 0), (0, 0), (0, 4, 5), (3, 4, 0)])
def test_masks_without_elements_select_nothing(shape: tuple[int, ...]) -> None:
    mask = np.ones(shape, np.bool_)

    def f(x: Any, mask: Any) -> Any:
        y = x.copy()
        y[mask] = 7
        return x[mask], y

    assert_traced_equals_eager(f, X, mask)
    assert_traced_equals_eager(lambda x: f(x, mask), X)


def test_masks_must_have_the_shape_of_what_they_cover() -> None:
    with pytest.raises(IndexError, match="did not match"):
        trace(lambda x: x.at[:, x[:, 0, 0] > 1].set(0), X)
    with pytest.raises(IndexError, match="too many indices"):
        trace(lambda x: x.at[0, x > 1].set(0), X)
    with pytest.raises(IndexError, match=r"axis 0; size of axis is 3 but .* is 5"):
        trace(lambda x: x[np.ones((5, 0), np.bool_)], X)


def test_at_divides_raises_to_powers_and_applies() -> None:
    x = np.array([8.0, 16.0, 32.0])
    program = trace(
        lambda x: [
            x.at[1].divide(4), x.at[[0, 2]].power(2), x.at[1:].apply(np.sqrt), x.at[0].subtract(3),
            x.at[0].get(),
        ],
        x,
    )  # fmt: skip
    expected = ([8, 4, 32], [64, 16, 1024], [8, 4, np.sqrt(32)], [5, 16, 32], 8)
    for got, wanted in zip(interpret.run(program, x), expected, strict=True):
        np.testing.assert_array_equal(got, wanted)


def test_numpy_arrays_take_traced_indices_as_tracegraph_arrays() -> None:
    table = np.array([10.0, 20.0, 30.0])
    program = trace(lambda i: (tnp.asarray(table)[i], tnp.take(table, i)), np.array([2, 0]))
    for got in interpret.run(program, np.array([2, 0])):
        np.testing.assert_array_equal(got, [30, 10])


@pytest.mark.parametrize("name", ["logical_or", "logical_and", "bitwise_or", "bitwise_and"])
@pytest.mark.parametrize("values", [True, False, np.array([True, False, False]), [0, 1, 1]])
def test_booleans_are_combined_at_indices(name: str, values: Any) -> None:
    ufunc: np.ufunc = getattr(np, name)

    def f(x: Any, i: Any) -> Any:
        y = x.copy()
        ufunc.at(y, i, np.asarray(values, bool))
        return y

    x, i = np.array([True, False, True, False]), np.array([0, 3, 3])
    for array in (x, x.astype(int)):
        found = tracegraph.jit(f, device="host")(array, i)
        np.testing.assert_array_equal(np.asarray(found), f(array, i), strict=True)
