"""Keywords of ufuncs, and methods of those that are not associative, as NumPy has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracegraph
from tests.helpers.numpy_agreement import numpys_and_jitted
from tracegraph.numpy.dispatching.ufunc_methods import COMBINERS

X = np.arange(12.0).reshape(3, 4) - 4
I = np.arange(1, 13, dtype=np.int8).reshape(3, 4)
Z = X + 1j * X[::-1]
Call = Callable[[Any, Any, Any], Any]


def assert_as_numpy(call: Callable[..., Any], *arguments: Any) -> None:
    """Require values, dtypes, shapes and signs of zeros of a jitted call to be NumPy's."""
    for value, got in numpys_and_jitted(call, *arguments):
        if value.dtype.kind in "fc":
            np.testing.assert_allclose(got, value, rtol=8 * np.finfo(value.dtype).eps)
            np.testing.assert_array_equal(np.signbit(got.real), np.signbit(value.real))
        else:
            np.testing.assert_array_equal(got, value)


CALLS: dict[str, Call] = {
    "casting of results": lambda x, i, z: np.add(x, i, out=i.copy(), casting="unsafe"),
    "casting of operands": lambda x, i, z: np.add(x, 2.5, dtype=int, casting="unsafe"),
    "keywords that change nothing": lambda x, i, z: np.add(x, i, subok=True, order="F"),
    "signature as text": lambda x, i, z: np.add(x, x, sig="ff->f", casting="same_kind"),
    "signature as a tuple": lambda x, i, z: np.multiply(i, i, signature=("l", "l", None)),
    "dtype of floats": lambda x, i, z: np.fabs(i, dtype=np.float32),
    "float_power into an array": lambda x, i, z: np.float_power(x, 2, out=x.copy()),
    "two results": lambda x, i, z: np.divmod(x, 3, out=(x * 1, x * 2)),
    "one of two results": lambda x, i, z: np.modf(x / 3, out=(None, x.copy())),
    "results by position": lambda x, i, z: np.frexp(x, x * 1, i.astype(np.int32)),
    "a result by position": lambda x, i, z: np.less(x, i, x > 0),
    "out=...": lambda x, i, z: np.add(x, i, out=...),
    "results of a larger shape": lambda x, i, z: np.sin(x[0], out=x.copy()),
    "where": lambda x, i, z: np.sqrt(x, out=x * 0, where=x > 0),
    "vecdot along an axis": lambda x, i, z: np.vecdot(z, z, axis=0),
    "vecdot with keepdims": lambda x, i, z: np.vecdot(z, x, axis=0, keepdims=True),
    "vecdot with axes": lambda x, i, z: np.vecdot(x, x.T, axes=[0, 1, ()]),
    "vecdot in a dtype": lambda x, i, z: np.vecdot(i, i, dtype=np.float32),
    "vecdot into an array": lambda x, i, z: np.vecdot(x, x, out=x[:, 0] * 1),
    "matmul with axes": lambda x, i, z: np.matmul(x, x, axes=[(0, 1), (1, 0), (1, 0)]),
    "matvec with axes": lambda x, i, z: np.matvec(x, x, axes=[(1, 0), 0, 0]),
    "vecmat in a dtype": lambda x, i, z: np.vecmat(i[:, 0], i, dtype=int),
    "sum into integers": lambda x, i, z: np.sum(x / 3, axis=0, out=i[0] * 1),
    "sum of small integers into such": lambda x, i, z: np.sum(i, axis=0, out=i[0] * 1),
    "sum from -0.0": lambda x, i, z: np.sum(x[:0], axis=0, initial=-0.0),
    "sum of -0.0 from -0.0": lambda x, i, z: np.sum(x * -0.0, axis=1, initial=-0.0),
    "masked sum from -0.0": lambda x, i, z: np.sum(x, axis=1, where=x > 90, initial=-0.0),
    "sum of a scalar over an axis": lambda x, i, z: np.sum(x[0, 0], axis=-1),
    "any of a scalar over an axis": lambda x, i, z: np.any(x[0, 0], axis=0),
    "axis of NumPy's": lambda x, i, z: np.cumsum(x, np.int8(1)) + np.sum(x, np.int64(0)),
    "where= as a list of numbers": lambda x, i, z: np.sin(x, out=x * 1, where=[1, 0, 2, 0]),
    "where= as a list": lambda x, i, z: np.sum(x, axis=1, where=[True, False, True, False]),
    "maximum where": lambda x, i, z: np.maximum.reduce(x, 1, where=[True] * 4, initial=-9),
    "axis of reduceat": lambda x, i, z: np.add.reduceat(x, [0, 2], axis=np.int64(1)),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_keyword_gives_what_it_gives_in_numpy(call: Call) -> None:
    assert_as_numpy(call, X, I, Z)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda x: np.add(x, x, out=x.astype(int)), TypeError),
        (lambda x: np.add(x, x, casting="no", dtype=np.float32), TypeError),
        (lambda x: np.add(x, x, order="Q"), ValueError),
        (lambda x: np.add(x, x, signature="d"), TypeError),
        (lambda x: np.add(x, x, signature="dd->dd"), ValueError),
        (lambda x: np.sum(x, axis=0, out=np.ones_like(x)), ValueError),
        (lambda x: np.max(x, axis=0, keepdims=True, out=np.ones_like(x)), ValueError),
        (lambda x: np.argmax(x, axis=0, out=np.ones_like(x, int)), ValueError),
        (lambda x: np.cumsum(x[0], out=np.ones_like(x)), ValueError),
        (lambda x: np.add.reduce(x, out=(np.ones_like(x[0]),) * 2), ValueError),
        (lambda x: np.add.reduce(x, out="no array"), TypeError),
        (lambda x: np.sum(x, where=np.array([1, 0, 1, 0])), TypeError),
        (lambda x: np.add(x, x, out=x * 1, where=np.array([1.0, 0, 1, 0])), TypeError),
        (lambda x: np.subtract.reduce(x, axis=None), ValueError),
        (lambda x: np.subtract.reduce(x[:0]), ValueError),
        (lambda x: np.vecdot(x, x, axis=0, axes=[0, 0, ()]), TypeError),
        (lambda x: np.matmul(x, x.T, axis=0), TypeError),
        (lambda x: np.matmul(x, x, axes=[(0, 1)]), ValueError),
    ],
)
def test_what_numpy_refuses_is_refused(call: Callable[[Any], Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        call(X)
    with pytest.raises(error):
        tracegraph.jit(call, device="host")(X)


IN_ORDER = sorted(
    name
    for name, ufunc in vars(np).items()
    if isinstance(ufunc, np.ufunc)
    and (ufunc.nin, ufunc.nout, ufunc.signature) == (2, 1, None)
    and ufunc.__name__ not in COMBINERS
    and name == ufunc.__name__
    and name != "ldexp"  # whose operands have two dtypes
)


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint16, np.float32])
@pytest.mark.parametrize("name", IN_ORDER)
def test_ufuncs_that_are_not_associative_fold_in_order(name: str, dtype: Any) -> None:
    ufunc: np.ufunc = getattr(np, name)
    if name in ("left_shift", "right_shift", "power"):
        x = (np.arange(12).reshape(3, 4) % 3).astype(dtype)
    else:
        x = (np.arange(12).reshape(3, 4) * 5 % 7 + 1).astype(dtype)
    try:
        with np.errstate(all="ignore"):
            ufunc.reduce(x)
    except TypeError:
        with pytest.raises(TypeError):
            tracegraph.jit(ufunc.reduce, device="host")(x)
        return
    assert_as_numpy(lambda a: ufunc.reduce(a), x)
    assert_as_numpy(lambda a: ufunc.reduce(a, axis=0, keepdims=True, initial=a[0, 0]), x)
    assert_as_numpy(lambda a: ufunc.reduce(a, where=[True, False, True, True], initial=1), x)
    assert_as_numpy(lambda a: ufunc.accumulate(a, axis=1), x)
    assert_as_numpy(lambda a: ufunc.accumulate(a[:1]), x)
    assert_as_numpy(lambda a: ufunc.reduceat(a, [0, 2, 1]), x)


def test_the_fold_of_a_comparison_is_in_booleans() -> None:
    assert_as_numpy(lambda a: np.equal.accumulate(a, dtype="?"), I)


@pytest.mark.parametrize("name", ["divide", "power", "fmax", "floor_divide", "arctan2", "less"])
@pytest.mark.parametrize("index", [1, [1, 1, 0], (slice(None, None, -2), [3, 3, 0]), ...])
def test_at_applies_any_ufunc_as_often_as_the_index_names_an_element(name: str, index: Any) -> None:
    ufunc: np.ufunc = getattr(np, name)

    def call(x: Any) -> Any:
        y = x * 1
        ufunc.at(y, index, 2)
        return y

    assert_as_numpy(call, X)
    assert_as_numpy(call, I)


def test_at_with_traced_indices_and_unary_ufuncs() -> None:
    def call(x: Any, i: Any, v: Any) -> Any:
        y = x * 1
        np.negative.at(y, i)
        np.add.at(y, (i, 0), v)  # floats to integers: each result converts
        np.divide.at(y, (i, i), v)
        return y

    assert_as_numpy(call, I, np.array([1, 1, 2]), np.array([1.75, 2.5, 0.5]))


def test_at_drops_what_is_out_of_range() -> None:
    def call(x: Any, i: Any) -> Any:
        y = x * 1
        np.divide.at(y, i, 2)
        return y

    found = tracegraph.jit(call, device="host")(np.full(3, 8.0), np.array([0, 7, 0, -1, -9]))
    np.testing.assert_array_equal(found, [2, 8, 4])


def test_an_outer_product_has_up_to_64_axes() -> None:
    x = np.ones((1,) * 33)
    with pytest.raises(ValueError, match="64"):
        np.add.outer(x, x)
    with pytest.raises(ValueError, match="64 axes"):
        tracegraph.jit(lambda x: np.add.outer(x, x), device="host")(x)
