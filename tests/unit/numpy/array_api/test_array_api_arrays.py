"""Functions of arrays in the array API standard: values, dtypes, defaults and errors."""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import tracegraph
import tracegraph.numpy as tnp
from tests.helpers.array_api_signatures import OF_ONE, OF_TWO, STANDARD
from tracegraph import errors

I = np.array([[3, 1, 2], [0, 5, -4]])
VALUES: Mapping[str, np.ndarray[Any, Any]] = {
    "i": I,
    "v": I[0],
    "w": np.array([1, 0, 2, 1]),
    "s": I.astype(np.int8),
    "u": np.abs(I).astype(np.uint8),
    "f": I.astype(np.float32) / 4,
    "d": I.astype(np.float64),
    "z": (I + 2j * I[::-1]).astype(np.complex64),
    "b": I > 1,
    "n": np.array([[1.0, np.nan, 2.0], [-0.0, 0.0, np.inf]]),
    "m": np.arange(24.0).reshape(2, 3, 4),
    "e": np.zeros((2, 0)),
    "o": np.array(7),
}
"""Arrays by the names that the expressions below have for them."""

CALLS = """
arange(5) | arange(1, 6, 2) | arange(5., 0., -1.5) | arange(3, dtype=xp.uint8) | arange(2, 2)
asarray(i) | asarray([[1, 2], [3, 4]]) | asarray(True) | asarray(1j)
asarray([1., 2], dtype=xp.float32)
empty((2, 0)) | empty((0,), dtype=xp.int8) | empty_like(e) | empty_like(e, dtype=xp.complex64)
eye(3) | eye(2, 3, k=1) | eye(3, 2, k=-1, dtype=xp.int8) | eye(2, k=5) | eye(0)
from_dlpack(i)
full(3, 7) | full((2, 2), 1.5, dtype=xp.float32) | full((), True) | full(2, 1j) | full((0, 2), 3)
full_like(i, 7) | full_like(f, 2) | full_like(i, 1, dtype=xp.complex64) | full_like(b, True)
linspace(0., 1., 5) | linspace(0, 1, 4, endpoint=False) | linspace(2, 2, 3) | linspace(0., 1., 1)
linspace(0., 1., 0) | linspace(0, 1j, 3) | linspace(0, 10, 3, dtype=xp.float32)
meshgrid(v, w) | meshgrid(v, w, indexing="ij") | meshgrid(v) | meshgrid(v, w, v) | meshgrid()
ones((2, 3)) | ones((), dtype=xp.int64) | ones_like(f) | ones_like(i, dtype=xp.bool)
zeros((2, 3)) | zeros(3, dtype=xp.complex128) | zeros_like(z) | zeros_like(i, dtype=xp.float32)
tril(i) | tril(i, k=1) | tril(m, k=-1) | triu(i) | triu(i, k=-1) | triu(m, k=2) | triu(b)
astype(i, xp.float32) | astype(f, xp.int16) | astype(b, xp.uint8) | astype(i, xp.bool, copy=False)
astype(d, xp.complex64) | astype(s, xp.uint8)
clip(i, 0, 3) | clip(f, max=.5) | clip(i, min=1) | clip(n, 0., 1.) | clip(i, v, 4) | clip(s, 0, 2)
take(v, w) | take(i, w, axis=1) | take(i, w[:2], axis=0) | take(m, w, axis=-2) | take(v, w[:0])
take_along_axis(i, i * 0, axis=0) | take_along_axis(i, xp.argmax(i, axis=1, keepdims=True))
matmul(i, xp.matrix_transpose(i)) | matmul(v, v) | matmul(m, xp.ones((4, 2))) | matmul(f, v) | i @ v
matrix_transpose(i) | matrix_transpose(m)
tensordot(i, i) | tensordot(v, v, axes=0) | tensordot(m, m, axes=([0, 1], [0, 1]))
tensordot(i, v, axes=1)
vecdot(i, i) | vecdot(z, z) | vecdot(i, i, axis=0) | vecdot(i, v) | vecdot(f, i)
broadcast_arrays(i, v) | broadcast_arrays(v[:, None], w) | broadcast_arrays(o, i)
broadcast_arrays(i)
broadcast_to(v, (2, 3)) | broadcast_to(o, (2, 2)) | broadcast_to(e, (3, 2, 0))
broadcast_to(i, (2, 3))
concat((i, i)) | concat((i, f), axis=1) | concat((i, i), axis=None) | concat([e, e])
concat((s, u))
concat((i, m[:, :, 0]), axis=-2)
expand_dims(i) | expand_dims(i, axis=1) | expand_dims(i, axis=-1) | expand_dims(o, axis=0)
flip(i) | flip(i, axis=0) | flip(m, axis=(0, -1)) | flip(o)
moveaxis(m, 0, -1) | moveaxis(m, (0, 1), (1, 2)) | moveaxis(m, 1, 1)
permute_dims(i, (1, 0)) | permute_dims(m, (2, 0, 1)) | permute_dims(o, ())
sort(i) | sort(m, axis=0) | sort(f, axis=-1, stable=False) | argsort(i) | argsort(m, axis=1)
searchsorted(m[0, 0], d) | searchsorted(v[:1], i, side="right")
searchsorted(v, v, sorter=w[:3] * 0)
searchsorted(u[0, :1], s) | searchsorted(f[0, :2] * 0, n) | searchsorted(v[:0], i)
repeat(v, 2) | repeat(i, 2, axis=1) | repeat(i, 2) | repeat(v, 0) | repeat(i, 3, axis=-2)
reshape(i, (3, 2)) | reshape(i, (-1,)) | reshape(m, (4, -1), copy=True) | reshape(o, (1, 1))
reshape(e, (0,))
roll(i, 1) | roll(i, 1, axis=1) | roll(i, (1, -1), axis=(0, 1)) | roll(v, -7)
roll(i, 2, axis=(0, 1))
squeeze(i[None], 0) | squeeze(i[:, None, None], (1, 2)) | squeeze(i[None], -3)
stack((i, i)) | stack((i, f), axis=-1) | stack([v, v, v], axis=1) | stack([o])
tile(i, (2, 1)) | tile(v, (2, 2)) | tile(m, (1, 2)) | tile(i, ()) | tile(v, (0,))
unstack(i) | unstack(m, axis=-1) | unstack(v)
argmax(i) | argmax(i, axis=0) | argmax(n, axis=1) | argmax(u, axis=-1, keepdims=True)
argmax(f, keepdims=True)
argmin(i) | argmin(i, axis=1) | argmin(n, axis=0) | argmin(f, keepdims=True) | argmin(u, axis=0)
count_nonzero(i) | count_nonzero(n, axis=0) | count_nonzero(b, axis=(0, 1))
count_nonzero(z, axis=1, keepdims=True)
where(b, i, f) | where(i > 0, v, 0.) | where(b, 1, i) | where(b, s, u) | where(o > 1, z, d)
cumulative_sum(v) | cumulative_sum(i, axis=0) | cumulative_sum(u, axis=1)
cumulative_sum(f, axis=1, include_initial=True)
cumulative_sum(n, axis=0) | cumulative_sum(s, axis=0, dtype=xp.int8)
cumulative_prod(v) | cumulative_prod(i, axis=1) | cumulative_prod(z, axis=0)
cumulative_prod(v, include_initial=True)
max(i) | max(f, axis=0) | max(n, axis=1) | max(u, axis=(0, 1), keepdims=True)
max(m, axis=(0, -1)) | max(o)
min(i) | min(f, axis=0) | min(n, axis=1) | min(u, keepdims=True) | min(m, axis=-1) | min(o)
mean(f) | mean(d, axis=0) | mean(m, axis=(0, 2)) | mean(n, axis=1, keepdims=True)
mean(z, axis=1) | mean(i)
prod(i) | prod(u) | prod(f, axis=1) | prod(z, axis=0) | prod(e, axis=1) | prod(s, dtype=xp.int8)
prod(e)
sum(i) | sum(u) | sum(s, axis=0) | sum(f, axis=1) | sum(e, axis=1) | sum(z, keepdims=True)
sum(i, dtype=xp.float32)
sum(m, axis=(0, 1)) | sum(e) | sum(i, axis=()) | sum(b) | sum(o)
std(f) | std(d, axis=0) | std(d, correction=1.) | std(m, axis=(0, 1), keepdims=True)
std(d, axis=1, correction=.5)
var(f) | var(d, axis=0) | var(d, correction=1) | var(m, axis=-1, keepdims=True) | var(n, axis=1)
all(i) | all(i, axis=0) | all(b, axis=(0, 1)) | all(n, axis=1, keepdims=True) | all(e)
all(e, axis=1)
any(i) | any(i, axis=0) | any(b, axis=1) | any(e) | any(e, axis=1) | any(n * 0, keepdims=True)
any(z)
diff(v) | diff(i, axis=0) | diff(i, n=2) | diff(b) | diff(i, prepend=i[:, :1])
diff(i, append=i, axis=0) | diff(v, n=0)
diff(u) | diff(v, n=5) | diff(i, prepend=i, append=i, n=2)
"""

EAGER = """
nonzero(i) | nonzero(n) | nonzero(e) | unique_all(w) | unique_counts(i) | unique_inverse(n)
unique_values(b)
"""
"""Their results have shapes that depend on elements."""

STATIC = """
can_cast(xp.int8, xp.int16) | can_cast(xp.float64, xp.float32) | can_cast(xp.bool, xp.int8)
can_cast(f, xp.float64)
isdtype(xp.int8, "integral") | isdtype(xp.float32, ("bool", xp.float32))
isdtype(xp.uint8, "signed integer")
isdtype(xp.complex64, "numeric") | isdtype(xp.bool, "numeric")
isdtype(xp.complex64, "complex floating")
result_type(i, f) | result_type(s, u) | result_type(xp.int8, xp.uint16) | result_type(f, 1.5)
result_type(s, 1)
result_type(f, 1j) | result_type(b, xp.bool) | result_type(i, xp.complex64)
finfo(xp.float32).eps | finfo(f).max | finfo(xp.complex64).bits | finfo(xp.float64).smallest_normal
finfo(z).min | finfo(xp.float32).dtype | iinfo(xp.int8).max | iinfo(u).bits
iinfo(xp.int16).min | iinfo(i).dtype
"""
"""Answered from dtypes, while tracing, too."""


def calls(text: str) -> list[str]:
    return [call.strip() for call in text.replace("\n", "|").split("|") if call.strip()]


def evaluated(call: str, xp: Any, arrays: Mapping[str, Any]) -> Any:
    expression = call if call.startswith("i @") else f"xp.{call}"
    return eval(expression, {"xp": xp, **arrays})


def ours() -> dict[str, Any]:
    return {name: tracegraph.asarray(value) for name, value in VALUES.items()}


def assert_same(found: Any, expected: Any) -> None:
    """The same structure, dtypes, shapes and values."""
    if isinstance(expected, (tuple, list)):
        assert len(found) == len(expected)
        assert isinstance(found, tuple) or not isinstance(expected, tuple)
        pairs = zip(found, expected, strict=True)
    else:
        pairs = iter([(found, expected)])
    for one, other in pairs:
        one, other = np.asarray(one), np.asarray(other)
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        np.testing.assert_allclose(one, other, rtol=1e-6)


@pytest.mark.parametrize("call", calls(CALLS))
def test_results_are_numpys(call: str) -> None:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        expected = I[None] if call == "expand_dims(i)" else evaluated(call, np, VALUES)
        eager = evaluated(call, tnp, ours())
        traced = tracegraph.jit(lambda arrays: evaluated(call, tnp, arrays), device="host")(VALUES)
    assert_same(eager, expected)
    assert_same(traced, expected)


@pytest.mark.parametrize("call", calls(EAGER))
def test_shapes_that_depend_on_elements_are_eager(call: str) -> None:
    expected = evaluated(call, np, VALUES)
    assert_same(evaluated(call, tnp, ours()), expected)
    with pytest.raises(errors.ShapeDependentError, match=call.partition("(")[0]):
        tracegraph.jit(lambda arrays: evaluated(call, tnp, arrays), device="host")(VALUES)


@pytest.mark.parametrize("call", calls(STATIC))
def test_questions_about_dtypes(call: str) -> None:
    of_dtypes = re.sub(r"info\((\w)\)", r"info(\1.dtype)", call)  # NumPy has it for those alone
    expected = evaluated(of_dtypes, np, VALUES)
    assert evaluated(call, tnp, ours()) == expected

    def f(arrays: Any) -> Any:
        assert evaluated(call, tnp, arrays) == expected
        return arrays["i"]

    tracegraph.jit(f, device="host")(VALUES)


def test_every_function_has_cases() -> None:
    named = {re.match(r"\w+", call)[0] for call in calls(CALLS + EAGER + STATIC)}  # type: ignore[index]
    rest = {*OF_ONE.split(), *OF_TWO.split(), "__array_namespace_info__"}
    assert STANDARD.keys() - rest <= named


DEFAULTS = """
arange(5) asarray(i) empty((0,)) empty_like(e) eye(3) from_dlpack(i) full(3, 7) full_like(i, 7)
linspace(0., 1., 5) meshgrid(v, w) ones(3) ones_like(i) tril(i) triu(i) zeros(3) zeros_like(i)
astype(i, xp.float32) clip(i) take(v, w) take_along_axis(i, i * 0) tensordot(i, i) vecdot(i, i)
concat((i, i)) expand_dims(i) flip(i) repeat(v, 2) reshape(i, (3, 2)) roll(i, 1) stack((i, i))
unstack(i) argmax(i) argmin(i) searchsorted(v[:1], i) count_nonzero(i) cumulative_prod(v)
cumulative_sum(v) max(i) mean(d)
min(i) prod(i) std(d) sum(i) var(d) all(i) any(i) diff(i)
"""


@pytest.mark.parametrize("call", re.findall(r"\w+\((?:[^()]|\([^()]*\))*\)", DEFAULTS))
def test_defaults_are_those_of_the_standard(call: str) -> None:
    parameters = STANDARD[call.partition("(")[0]].parameters.values()
    spelled = [
        f"{p.name}={p.default!r}"
        for p in parameters
        if p.default is not p.empty and p.kind is not p.POSITIONAL_ONLY
    ]
    assert spelled
    full = f"{call[:-1]}, {', '.join(spelled)})"
    plain = evaluated(call, tnp, ours())
    assert_same(evaluated(full, tnp, ours()), plain)
    traced = tracegraph.jit(lambda arrays: evaluated(full, tnp, arrays), device="host")(VALUES)
    assert_same(traced, plain)


def test_every_default_is_tested() -> None:
    with_defaults = {
        name
        for name, signature in STANDARD.items()
        if any(p.default is not inspect.Parameter.empty for p in signature.parameters.values())
    }
    assert with_defaults == set(re.findall(r"(\w+)\((?=[^)])", DEFAULTS)) & with_defaults


WRONG = """
searchsorted(i, v) | searchsorted(v, i, side="middle") | matmul(i, i) | matmul(o, i)
matmul(v, w) | vecdot(v, w) | tensordot(i, v, axes=2)
tensordot(i, i, axes=([0], [1])) | broadcast_to(v, (2,)) | broadcast_to(i, (3, 2))
broadcast_arrays(v, w)
concat((i, v)) | concat((i, m)) | concat((i, i), axis=2) | concat([]) | stack([]) | stack((v, w))
stack((i, i), axis=5) | expand_dims(i, axis=4) | expand_dims(i, axis=-4) | flip(i, axis=2)
flip(m, axis=(0, 0))
moveaxis(m, 0, 3) | moveaxis(m, (0, 1), (1,)) | permute_dims(m, (0, 1)) | permute_dims(m, (0, 0, 1))
permute_dims(m, (0, 1, 3)) | repeat(v, -1) | repeat(i, 2, axis=2) | reshape(i, (4, 2))
reshape(i, (-1, -1))
reshape(i, (-1, 4)) | roll(i, 1, axis=2) | roll(i, (1, 2), axis=(0, 1, 1)) | squeeze(i, 0)
squeeze(i[None], 3)
unstack(o) | unstack(i, axis=2) | take(i, w, axis=2) | take(v, w + 9)
take_along_axis(i, v, axis=0)
take_along_axis(i, f, axis=0) | argmax(i, axis=2) | argmin(e) | argmax(e, axis=1) | max(e)
min(e, axis=1)
sum(i, axis=2) | sum(i, axis=(0, 0)) | prod(i, axis=-3) | mean(d, axis=3) | std(d, axis=2)
var(d, axis=(1, 1))
all(i, axis=2) | any(i, axis=-3) | max(i, axis=2) | min(i, axis=(0, 0)) | count_nonzero(i, axis=2)
cumulative_sum(i) | cumulative_sum(i, axis=2) | cumulative_prod(i) | cumulative_prod(i, axis=-3)
diff(o) | diff(i, axis=2) | diff(i, n=-1) | where(b, v, w) | clip(i, w, 3) | tril(o) | triu(o)
linspace(0., 1., -1) | meshgrid(v, w, indexing="ji") | matrix_transpose(v) | full((2, -1), 1)
zeros(-1)
eye(-1) | arange(0, 5, 0) | astype(i, "nonsense") | isdtype(xp.int8, "nonsense")
finfo(xp.int8) | iinfo(f)
can_cast(1, xp.int8) | take(v, f) | take(v, w, mode="x") | take_along_axis(i, b, axis=0)
"""


@pytest.mark.parametrize("call", calls(WRONG))
def test_misuse_raises_as_in_numpy(call: str) -> None:
    with pytest.raises(Exception) as expected:  # noqa: PT011 - whatever NumPy raises
        evaluated(call, np, VALUES)
    kind = next(
        k for k in (IndexError, ValueError, TypeError, ZeroDivisionError)
        if isinstance(expected.value, k)
    )  # fmt: skip
    with pytest.raises(kind) as caught:
        evaluated(call, tnp, ours())
    assert str(caught.value)
    with pytest.raises(kind) as caught, tracegraph.check_indices():
        tracegraph.jit(lambda arrays: evaluated(call, tnp, arrays), device="host")(VALUES)
    assert str(caught.value)
