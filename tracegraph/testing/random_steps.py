"""Steps of random programs without control flow. Each maker draws one that is legal in a scope."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tracegraph.testing.values import (
    DTYPES,
    Drawn,
    Env,
    Known,
    StepScope,
    bounded,
    broadcast,
    small,
)

Maker = Callable[[StepScope], Drawn]


_BINARY = (
    np.add,
    np.subtract,
    np.multiply,
    np.maximum,
    np.minimum,
    np.floor_divide,
    np.remainder,
)


def _one(function: Callable[[Env], Any], result: Known, text: str) -> Drawn:
    return Drawn(lambda env: (bounded(function(env)),), (result,), text)


def unary(scope: StepScope) -> Drawn:
    """A function of one value."""
    i = scope.any()
    choices = [np.negative, np.absolute, np.sign, np.square, np.invert]
    if scope.known[i].dtype.kind == "f":
        choices = [*choices[:-1], np.rint, np.floor]
    function = scope.draw(st.sampled_from(choices))
    return _one(lambda env: function(env[i]), scope.known[i], f"{function.__name__} v{i}")


def binary(scope: StepScope) -> Drawn:
    """A function of two values that broadcast."""
    i = scope.any()
    j = scope.pick(lambda k: broadcast(scope.known[i].shape, k.shape) is not None)
    assert j is not None
    function = scope.draw(st.sampled_from(_BINARY))
    left, right = scope.known[i], scope.known[j]
    shape = broadcast(left.shape, right.shape)
    assert shape is not None

    def compute(env: Env) -> Any:
        divides = function in (np.floor_divide, np.remainder)
        divisor = np.where(env[j] == 0, np.ones_like(env[j]), env[j]) if divides else env[j]
        return function(env[i], divisor)

    result = Known(shape, np.result_type(left.dtype, right.dtype))
    return _one(compute, result, f"{function.__name__} v{i} v{j}")


def with_scalar(scope: StepScope) -> Drawn:
    """Arithmetic with Python scalars."""
    i, number = scope.any(), scope.draw(st.integers(1, 5))
    return _one(lambda env: env[i] * number + 1, scope.known[i], f"v{i} * {number} + 1")


def where(scope: StepScope) -> Drawn:
    """A choice by sign."""
    i = scope.any()
    j = scope.pick(lambda k: k.shape == scope.known[i].shape)
    assert j is not None
    dtype = np.result_type(scope.known[i].dtype, scope.known[j].dtype)
    result = Known(scope.known[i].shape, dtype)
    text = f"where v{i} > 0, v{j}, v{i}"
    return _one(lambda env: np.where(env[i] > 0, env[j], env[i]), result, text)


def cast(scope: StepScope) -> Drawn:
    """Another dtype; of absolute values, since unsigned dtypes have no others."""
    i, dtype = scope.any(), scope.draw(st.sampled_from(DTYPES))
    result = Known(scope.known[i].shape, dtype)
    return _one(lambda env: np.absolute(env[i]).astype(dtype), result, f"|v{i}| as {dtype}")


def reduction(scope: StepScope) -> Drawn:
    """A fold over some axes, in the dtype of its operand."""
    i = scope.pick(lambda k: len(k.shape) > 0)
    if i is None:
        return unary(scope)
    known = scope.known[i]
    full = [np.min, np.max, np.argmax, np.argmin] if 0 not in known.shape else []
    function: Any = scope.draw(st.sampled_from([np.sum, np.any, np.all, np.sum, *full]))
    most = 1 if function in (np.argmax, np.argmin) else len(known.shape)
    numbers = st.integers(0, len(known.shape) - 1)
    axes = scope.draw(st.lists(numbers, min_size=1, max_size=most, unique=True))
    axis = axes[0] if len(axes) == 1 else tuple(axes)
    keepdims = scope.draw(st.booleans())

    def compute(env: Env) -> Any:
        return function(env[i], axis=axis, keepdims=keepdims).astype(known.dtype)

    shape = function(known.sample, axis=axis, keepdims=keepdims).shape
    text = f"{function.__name__} v{i} axis={axis} keepdims={keepdims}"
    return _one(compute, Known(shape, known.dtype), text)


def running_sum(scope: StepScope) -> Drawn:
    """A cumsum along one axis, in the dtype of its operand."""
    i = scope.pick(lambda k: len(k.shape) > 0)
    if i is None:
        return unary(scope)
    known = scope.known[i]
    axis = scope.draw(st.integers(0, len(known.shape) - 1))

    def compute(env: Env) -> Any:
        return np.cumsum(env[i], axis=axis).astype(known.dtype)

    return _one(compute, known, f"cumsum v{i} axis={axis}")


def rearrangement(scope: StepScope) -> Drawn:
    """The same elements at other places."""
    i = scope.pick(lambda k: len(k.shape) > 0)
    if i is None:
        return unary(scope)
    known = scope.known[i]
    axis = scope.draw(st.integers(0, len(known.shape) - 1))
    step = -1 if known.shape[axis] < 3 else 2
    before = (slice(None),) * axis
    padding = [(1, 0) if a == axis else (0, 0) for a in range(len(known.shape))]
    functions: dict[str, Callable[[Any], Any]] = {
        "transpose": np.transpose,
        "flip": lambda x: np.flip(x, axis),
        "roll": lambda x: np.roll(x, 1, axis),
        "ravel": np.ravel,
        "slice": lambda x: x[(*before, slice(None, None, step))],
        "tail": lambda x: x[(*before, slice(1, None))],
        "pad": lambda x: np.pad(x, padding),
        "double": lambda x: np.concatenate([x, x + 1], axis),
        "expand": lambda x: np.expand_dims(x, axis),
        "repeat": lambda x: np.repeat(x, 2, axis),
        "broadcast": lambda x: np.broadcast_to(x, (2, *x.shape)),
    }
    choice = scope.draw(st.sampled_from(list(functions)))
    result = Known.of(functions[choice](known.sample))
    if not small(result.shape):
        return unary(scope)
    return _one(lambda env: functions[choice](env[i]), result, f"{choice} v{i} axis={axis}")


def join(scope: StepScope) -> Drawn:
    """Two values of one shape, stacked."""
    i = scope.any()
    j = scope.pick(lambda k: k.shape == scope.known[i].shape)
    assert j is not None
    shape = (2, *scope.known[i].shape)
    if not small(shape):
        return unary(scope)
    dtype = np.result_type(scope.known[i].dtype, scope.known[j].dtype)
    return _one(lambda env: np.stack([env[i], env[j]]), Known(shape, dtype), f"stack v{i} v{j}")


def product(scope: StepScope) -> Drawn:
    """A matrix product, if there are two values that have one."""
    i = scope.pick(lambda k: len(k.shape) > 0)
    if i is None:
        return unary(scope)
    left = scope.known[i]

    def multiplied(right: Known) -> Known | None:
        try:
            return Known.of(np.asarray(left.sample @ right.sample))
        except ValueError:
            return None

    def fits(right: Known) -> bool:
        result = multiplied(right)
        return result is not None and small(result.shape)

    j = scope.pick(fits)
    if j is None:
        return unary(scope)
    result = multiplied(scope.known[j])
    assert result is not None
    # The sum of one product may be -0 or, added to 0 as in BLAS, +0: prints would show which.
    return _one(lambda env: env[i] @ env[j] + 0, result, f"v{i} @ v{j}")


def _positions(scope: StepScope, extent: int) -> tuple[Callable[[Env], Any], tuple[int, ...], str]:
    """Indices in -extent..extent-1: known ones, or an array's values brought into that range."""
    j = scope.pick(lambda k: 0 < int(np.prod(k.shape)) <= 6)
    if j is None or scope.draw(st.booleans()):
        numbers = scope.draw(st.lists(st.integers(-extent, extent - 1), min_size=1, max_size=4))
        fixed = np.array(numbers)
        return (lambda env: fixed), fixed.shape, str(numbers)
    chosen = j  # narrowed for the function below

    def compute(env: Env) -> Any:
        return np.clip(env[chosen].astype(np.int64), -extent, extent - 1)

    return compute, scope.known[j].shape, f"v{j} in range"


def gather(scope: StepScope) -> Drawn:
    """Rows by number."""
    i = scope.pick(lambda k: len(k.shape) > 0 and k.shape[0] > 0)
    if i is None:
        return unary(scope)
    known = scope.known[i]
    positions, batch, text = _positions(scope, known.shape[0])
    shape = (*batch, *known.shape[1:])
    if not small(shape):
        return unary(scope)
    return _one(lambda env: env[i][positions(env)], Known(shape, known.dtype), f"v{i}[{text}]")


def update(scope: StepScope) -> Drawn:
    """A copy that is written to, by rows that may repeat, or by a slice read from itself."""
    i = scope.pick(lambda k: len(k.shape) > 0 and k.shape[0] > 0)
    if i is None:
        return unary(scope)
    known = scope.known[i]
    how = scope.draw(st.sampled_from(["set", "add", "reversed"]))
    positions, batch, text = _positions(scope, known.shape[0])
    ranks = np.arange(int(np.prod(batch))).reshape(batch + (1,) * (len(known.shape) - 1))

    def compute(env: Env) -> Any:
        x = env[i].copy()
        if how == "set":
            x[positions(env)] = ranks.astype(known.dtype)  # the last of equal rows stays
        elif how == "add":
            x[positions(env)] += 1
        else:
            x[1:] = x[:-1] + x[1:]
        return x

    return _one(compute, known, f"v{i} with {how} at {text}")


SIMPLE: tuple[Maker, ...] = (
    unary,
    binary,
    binary,
    with_scalar,
    where,
    cast,
    reduction,
    reduction,
    running_sum,
    rearrangement,
    rearrangement,
    join,
    product,
    gather,
    update,
)
