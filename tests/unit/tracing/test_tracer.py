"""Tracers behave as ndarrays do: operators, in-place operations, views, read-only values."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tracegraph
import tracegraph.numpy as tnp
from tests.helpers.traced import assert_traced_equals_eager, trace
from tracegraph import control, errors, tree
from tracegraph.ir import interpret
from tracegraph.tracing.tracer import Tracer

X = np.arange(12.0).reshape(3, 4)

ARITHMETIC = [
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod,
    operator.pow, operator.matmul, divmod, operator.eq, operator.ne, operator.lt, operator.le,
    operator.gt, operator.ge,
]  # fmt: skip
BITWISE = [operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift]


@pytest.mark.parametrize("op", ARITHMETIC)
def test_arithmetic_and_comparison_operators(op: Any) -> None:
    a, b = np.array([[1.0, -2.0], [3.0, 4.5]]), np.array([[2.0, 3.0], [0.5, 2.0]])
    assert_traced_equals_eager(op, a, b)
    assert_traced_equals_eager(lambda x: op(x, b), a)  # the array's operator
    assert_traced_equals_eager(lambda y: op(a, y), b)  # NumPy defers to the tracer
    if op is not operator.matmul:
        assert_traced_equals_eager(lambda x: (op(x, 2), op(2, x)), a)


@pytest.mark.parametrize("op", BITWISE)
def test_bitwise_operators(op: Any) -> None:
    a, b = np.array([1, 6, 12], np.int16), np.array([3, 1, 2], np.int16)
    assert_traced_equals_eager(op, a, b)
    assert_traced_equals_eager(lambda y: (op(a, y), op(y, 1), op(1, y)), b)


@pytest.mark.parametrize("op", [operator.neg, operator.pos, abs, operator.invert])
def test_unary_operators(op: Any) -> None:
    assert_traced_equals_eager(op, np.array([1, -2, 3]))


def test_python_scalars_bend_to_arrays_and_keep_python_arithmetic_among_themselves() -> None:
    def f(x: Any, n: Any, t: Any) -> Any:
        return x + n, x * t, x + n * t, x + (n + 1), np.sin(n)

    assert_traced_equals_eager(f, np.ones(2, np.float32), 3, 0.5)
    assert_traced_equals_eager(lambda x, n: x // n, np.ones(2, np.int8), 3)


IN_PLACE = [
    operator.iadd, operator.isub, operator.imul, operator.itruediv, operator.ifloordiv,
    operator.imod, operator.ipow,
]  # fmt: skip


@pytest.mark.parametrize("op", IN_PLACE)
def test_in_place_operators_write_to_the_array(op: Any) -> None:
    def f(x: Any) -> Any:
        y = x + 1
        alias, row = y, y[1]
        y = op(y, 2)
        z = x.astype(np.float32)
        z = op(z, x + 1)  # float64 into float32 is "same_kind"
        return y, alias, row, z

    assert_traced_equals_eager(f, X)


@pytest.mark.parametrize(
    "op", [operator.iand, operator.ior, operator.ixor, operator.ilshift, operator.irshift]
)
def test_in_place_bitwise_operators(op: Any) -> None:
    def f(x: Any) -> Any:
        y = x.copy()
        alias = y
        y = op(y, 1)
        return alias

    assert_traced_equals_eager(f, np.array([1, 6, 12]))


def test_in_place_operators_rebind_scalars() -> None:
    def f(x: Any, n: Any) -> Any:
        total = x.sum()
        before = total
        total += x
        n += 1
        return total, before, n

    assert_traced_equals_eager(f, X, 3)


def test_in_place_results_must_fit_the_dtype_and_shape() -> None:
    def cast(x: Any) -> Any:
        y = x.copy()
        y += 0.5
        return y

    with pytest.raises(errors.InPlaceCastError, match=r'f64\[2\].*i64\[2\].*"same_kind"'):
        trace(cast, np.arange(2))

    def grow(x: Any) -> Any:
        y = x[0].copy()
        y += x
        return y

    with pytest.raises(ValueError, match=r"shape \(3, 4\) does not fit in place into shape \(4,\)"):
        trace(grow, X)


VIEWS: dict[str, Any] = {
    "slice": lambda y: y[1:, ::2],
    "row": lambda y: y[1],
    "reversed": lambda y: y[::-1],
    "new axis": lambda y: y[:, None],
    "transposed": lambda y: y.T,
    "reshaped": lambda y: y.reshape(2, 6),
    "ravelled": lambda y: y.ravel(),
    "ravelled transposed": lambda y: y.T.ravel(),  # NumPy copies here
    "reshaped columns": lambda y: y[:, :2].reshape(-1),  # and here
    "ravelled strided": lambda y: y.ravel()[::2].ravel(),  # and here, but
    "reshaped strided": lambda y: y.ravel()[::2].reshape(-1),  # not here
    "ravelled row": lambda y: y[:1][::-1].ravel(),  # nor here: the stride of one row is nobody's
    "of a view": lambda y: y[1:].T[0],
    "flattened": lambda y: y.flatten(),
    "fancy": lambda y: y[[0, 1]],
    "copied": lambda y: y[1:].copy(),
    "swapped": lambda y: np.swapaxes(y, 0, 1),
    "flipped": lambda y: np.flip(y, 1),
    "rotated": np.rot90,
    "squeezed": lambda y: np.squeeze(y[:1]),
    "expanded": lambda y: np.expand_dims(y, 0),
    "split": lambda y: np.split(y, 2, axis=1)[1],
    "0-d": lambda y: y[0, 1, ...],
    "converted": lambda y: y.astype(float),
    "tiled": lambda y: np.tile(y, 1),
    "repeated": lambda y: np.repeat(y, 1, axis=0),
    "padded": lambda y: np.pad(y, 0),
    "moved": lambda y: np.moveaxis(y, 0, -1),
    "at least": lambda y: np.atleast_3d(y),
}


@pytest.mark.parametrize("name", VIEWS)
def test_views_read_and_write_their_base_as_numpys_do(name: str) -> None:
    def f(x: Any) -> Any:
        y = x * 1
        view = VIEWS[name](y)
        y[1:, 1] = -1
        first = view + 0
        view[...] = view * 10
        y *= 2
        if view.ndim:
            view[-1] += 100
        return y, view, first

    assert_traced_equals_eager(f, X)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(sorted(VIEWS)), st.booleans()), min_size=1, max_size=4))
def test_chains_of_views_and_writes_equal_numpys(steps: list[tuple[str, bool]]) -> None:
    def f(x: Any) -> Any:
        y = x * 1
        arrays = [y]
        for name, deeper in steps:
            base = arrays[-1] if deeper and arrays[-1].shape == (3, 4) else y
            arrays.append(VIEWS[name](base))
            arrays[-1][...] += 1
            arrays[len(arrays) // 2][...] *= 2
        return arrays

    assert_traced_equals_eager(f, X)


def test_views_of_views_need_no_deep_stack() -> None:
    def f(x: Any) -> Any:
        y = x * 1
        view = other = y
        for _ in range(600):
            view, other = view[::-1], other[::-1]
        y[0] = -1
        read = view + 0
        view[1] = 5
        other += view  # the same elements: NumPy needs no copy
        return y, view, read, other.reshape(-1)

    assert_traced_equals_eager(f, X)


def set_first(x: Any) -> Any:
    x[0] = 1
    return x


def add_in_place(x: Any) -> Any:
    x += 1
    return x


def set_through_view(x: Any) -> Any:
    x.T[0] = 1
    return x


def out_of_argument(x: Any) -> Any:
    return np.add(x, 1, out=x)


@pytest.mark.parametrize("function", [set_first, add_in_place, set_through_view, out_of_argument])
def test_arguments_are_not_written_to(function: Any) -> None:
    with pytest.raises(errors.TracerWriteError, match="argument") as caught:
        trace(function, X)
    for advice in (".copy()", ".at[i].set(v)", "test_tracer.py"):
        assert advice in str(caught.value)


def test_captured_values_are_not_written_to() -> None:
    def captured(x: Any) -> Any:
        y = x * 2

        def body(c: Any) -> Any:
            y[0] = c
            return c + 1

        return control.while_loop(lambda c: c < 3, body, 0.0)

    with pytest.raises(errors.TracerWriteError, match="captured from outside"):
        trace(captured, X)


def test_a_loop_body_may_write_to_what_it_made() -> None:
    def f(x: Any) -> Any:
        def body(state: Any) -> Any:
            k, c = state
            c = c.copy()
            c[k] += c[k - 1]
            return k + 1, c

        return control.while_loop(lambda state: state[0] < 4, body, (1, x))

    assert_traced_equals_eager(f, X.reshape(-1))


def test_broadcast_views_are_read_only() -> None:
    def f(x: Any) -> Any:
        y = x + 1
        np.broadcast_to(y, (2, 3, 4))[0] = 1
        return y

    with pytest.raises(errors.TracerWriteError, match="several elements of which may be one"):
        trace(f, X)


def test_ufunc_methods() -> None:
    def f(x: Any, v: Any) -> Any:
        y = x.copy()
        np.add.at(y, ([0, 0], [1, 1]), 5)
        np.subtract.at(y, [1], v)
        np.maximum.at(y, 2, 9.5)
        return (
            y, np.add.reduce(x), np.multiply.reduce(x, axis=1), np.maximum.reduce(x, keepdims=True),
            np.logical_or.reduce(x > 3), np.add.accumulate(x), np.multiply.accumulate(v),
            np.subtract.outer(v, x),
        )  # fmt: skip

    assert_traced_equals_eager(f, X, X[1])


def test_methods_without_a_function_of_the_same_behaviour() -> None:
    def f(x: Any) -> Any:
        y = x.copy()
        y.fill(7)
        return y, x.conj(), x.flatten(), x.round(1), x.T.copy()

    assert_traced_equals_eager(f, X)


def test_a_numpy_array_on_the_left_defers() -> None:
    def f(x: Any) -> Any:
        a = np.ones((3, 4))
        return a + x, a @ x.T, a > x, np.float32(2) * x, [1.0] * 4 + x[0]

    assert_traced_equals_eager(f, X)


def test_a_tracer_is_a_leaf_of_a_tree() -> None:
    seen = []

    def f(x: Any) -> Any:
        seen.extend(tree.leaves({"a": x, "b": [x, None]}))
        return x

    trace(f, X)
    assert [type(leaf) for leaf in seen] == [Tracer, Tracer]


def test_a_value_that_numpy_knows_stays_a_constant() -> None:
    program = trace(lambda x: x + np.ones((3, 4)) * 2, X)
    assert len(program.constants) == 1
    np.testing.assert_array_equal(interpret.run(program, X)[0], X + 2)


def test_constants_are_not_changed_by_writes_in_the_traced_function() -> None:
    table = np.zeros(3)

    def f(x: Any) -> Any:
        mine = tnp.array(table)
        mine[0] = x
        return mine

    np.testing.assert_array_equal(interpret.run(trace(f, 4.0), np.float64(4))[0], [4, 0, 0])
    np.testing.assert_array_equal(table, 0)

    def wrong(x: Any) -> Any:
        tnp.asarray(table)[0] = x

    with pytest.raises(errors.TracerWriteError):
        trace(wrong, 4.0)


def test_arrays_of_the_same_elements_are_one_constant() -> None:
    index = np.array([2, 0, 1])

    def function(x: Any) -> Any:
        return x[index] + 1, x[index] * 2, x + np.zeros(3), x - np.zeros(3), x * np.zeros(3, "f4")

    program = trace(function, np.zeros(3))
    assert [(c.dtype.name, c.tolist()) for c in program.constants] == [
        ("int64", [2, 0, 1]),
        ("float64", [0, 0, 0]),
        ("float32", [0, 0, 0]),
    ]
    assert not any(c.flags.writeable for c in program.constants)


def test_a_closed_over_array_that_changes_while_tracing_is_two_constants() -> None:
    def function(t):
        b = np.zeros(3)
        y = t + b
        b[0] = 1
        return y, t + b

    before, after = tracegraph.jit(function, device="host")(np.zeros(3))
    np.testing.assert_array_equal(before, [0, 0, 0])
    np.testing.assert_array_equal(after, [1, 0, 0])
