"""A traced value where a static one is needed: the function and the argument are named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracegraph
from tests.helpers.compiled import host_jit
from tracegraph import errors
from tracegraph import numpy as tnp

X = np.arange(12.0).reshape(3, 4)
N = 1


CASES: list[tuple[Callable[[Any, Any], Any], str]] = [
    (lambda x, n: np.sum(x, axis=n), "axis of numpy.sum"),
    (lambda x, n: np.sum(x, n), "axis of numpy.sum"),
    (lambda x, n: x.sum((0, n)), "axis of numpy.sum"),
    (lambda x, n: np.sum(x, keepdims=n), "keepdims of numpy.sum"),
    (lambda x, n: x.mean(n), "axis of numpy.mean"),
    (lambda x, n: x.argmax(n), "axis of numpy.argmax"),
    (lambda x, n: np.cumsum(x, n), "axis of numpy.cumsum"),
    (lambda x, n: np.linalg.norm(x, axis=n), "axis of numpy.linalg.norm"),
    (lambda x, n: x.reshape(n, -1), "shape of numpy.reshape"),
    (lambda x, n: np.reshape(x, (n, -1)), "shape of numpy.reshape"),
    (lambda x, n: np.broadcast_to(x, (n, 3, 4)), "shape of numpy.broadcast_to"),
    (lambda x, n: np.round(x, n), "decimals of numpy.round"),
    (lambda x, n: x.round(n), "decimals of numpy.around"),
    (lambda x, n: np.expand_dims(x, n), "axis of numpy.expand_dims"),
    (lambda x, n: np.squeeze(x[:, None], n), "axis of numpy.squeeze"),
    (lambda x, n: x.transpose(n, 0), "axes of numpy.transpose"),
    (lambda x, n: np.swapaxes(x, n, 0), "axis1 of numpy.swapaxes"),
    (lambda x, n: np.moveaxis(x, 0, n), "destination of numpy.moveaxis"),
    (lambda x, n: np.concatenate([x, x], axis=n), "axis of numpy.concatenate"),
    (lambda x, n: np.stack([x, x], axis=n), "axis of numpy.stack"),
    (lambda x, n: np.split(x, n), "indices_or_sections of numpy.split"),
    (lambda x, n: np.take(x, [0], axis=n), "axis of numpy.take"),
    (lambda x, n: tnp.repeat(x, n, total_repeat_length=n), "total_repeat_length of numpy.repeat"),
    (lambda x, n: np.tile(x, n), "reps of numpy.tile"),
    (lambda x, n: np.pad(x, ((n, 0), (0, 0))), "pad_width of numpy.pad"),
    (lambda x, n: np.diff(x, n), "n of numpy.diff"),
    (lambda x, n: np.diag(x, n), "k of numpy.diag"),
    (lambda x, n: np.rot90(x, n), "k of numpy.rot90"),
    (lambda x, n: np.roll(x, 1, n), "axis of numpy.roll"),
    (lambda x, n: np.flip(x, n), "axis of numpy.flip"),
    (lambda x, n: np.ones_like(x, shape=n), "shape of numpy.ones_like"),
    (lambda x, n: tnp.zeros((n, 2)), "shape of numpy.zeros"),
    (lambda x, n: tnp.full(n, 3), "shape of numpy.full"),
    (lambda x, n: tnp.arange(0, n), "stop of numpy.arange"),
    (lambda x, n: tnp.linspace(x[0], 1, n), "num of numpy.linspace"),
    (lambda x, n: tnp.eye(n), "N of numpy.eye"),
    (lambda x, n: tnp.nonzero(x, size=n), "size of numpy.nonzero"),
]


@pytest.mark.parametrize(("function", "named"), CASES, ids=[named for _, named in CASES])
def test_the_argument_is_named(function: Callable[[Any, Any], Any], named: str) -> None:
    with pytest.raises(errors.StaticArgumentError) as caught:
        host_jit(function)(X, N)
    message = str(caught.value)
    assert message.startswith(f"argument {named} must be known while the function is traced")
    assert "(argument n)" in message
    assert "static_argnums" in message
    assert "at test_static_arguments.py:" in message
    assert isinstance(caught.value, TypeError)


@pytest.mark.parametrize("function", [function for function, _ in CASES])
def test_as_a_static_argument_it_gives_what_it_gives_eagerly(
    function: Callable[[Any, Any], Any],
) -> None:
    static = tracegraph.jit(function, static_argnums=1, device="host")
    got, wanted = (tracegraph.tree.leaves(f(X, N)) for f in (static, function))
    assert len(got) == len(wanted)
    for array, expected in zip(got, wanted, strict=True):
        np.testing.assert_array_equal(array, expected)


@pytest.mark.parametrize(
    ("function", "bound"),
    [
        (lambda x, n: x[n : n + 2], "start"),
        (lambda x, n: x[:n], "stop"),
        (lambda x, n: x[0, :n], "stop"),
        (lambda x, n: x[::n], "step"),
        (lambda x, n: x.at[:n].set(0), "stop"),
        (lambda x, n: x.copy().__setitem__(slice(n, None), 0), "start"),
    ],
)
def test_bounds_of_slices(function: Callable[[Any, Any], Any], bound: str) -> None:
    with pytest.raises(errors.TracerSliceError, match=r"numpy\.arange\(size\)") as caught:
        host_jit(function)(X, N)
    assert str(caught.value).startswith(f"the {bound} of a slice must be known")


def test_other_errors_stay() -> None:
    with pytest.raises(np.exceptions.AxisError):
        host_jit(lambda x, n: np.sum(x, axis=2) + n)(X, N)
    with pytest.raises(errors.TracerBoolError):
        host_jit(lambda x, n: np.sum(x, axis=1 if n > 0 else 0))(X, N)


@pytest.mark.parametrize("shift", [0, 1, -1, 5, 2**40 + 1, -(2**62)])
@pytest.mark.parametrize("axis", [None, 0, 1, -1, (0, 1), (1, 1)])
@pytest.mark.parametrize("shape", [(3, 4), (1, 5), (0, 3), (2, 3, 2)])
def test_roll_by_a_traced_shift(shift: int, axis: Any, shape: tuple[int, ...]) -> None:
    x = np.arange(np.prod(shape)).reshape(shape)

    def rolled(x: Any, shift: Any) -> Any:
        return np.roll(x, shift, axis)

    np.testing.assert_array_equal(host_jit(rolled)(x, shift), rolled(x, shift))


@pytest.mark.parametrize("dtype", "bhilBHIL")
def test_roll_by_shifts_of_any_integer_dtype(dtype: str) -> None:
    x = np.arange(600).reshape(2, 300)
    shifts = np.array([1, np.iinfo(dtype).max], dtype)

    def rolled(x: Any, s: Any) -> Any:
        return np.roll(x, s, (0, 1)), np.roll(x, [s[0], s[1]], (0, 1)), np.roll(x, s[1], 1)

    for got, wanted in zip(host_jit(rolled)(x, shifts), rolled(x, shifts), strict=True):
        np.testing.assert_array_equal(got, wanted)


def test_roll_of_several_shifts_along_one_axis_or_none() -> None:
    x = np.arange(12).reshape(3, 4)

    def rolled(x: Any, s: Any) -> Any:
        return np.roll(x, s, 1), np.roll(x, s), np.roll(x, (s[0], 2))

    shifts = np.array([1, 2])
    for got, wanted in zip(host_jit(rolled)(x, shifts), rolled(x, shifts), strict=True):
        np.testing.assert_array_equal(got, wanted)
    with pytest.raises(ValueError, match="broadcast"):
        host_jit(lambda x, s: np.roll(x, s, (0, 1, 0)))(x, shifts)
