"""Functions of elements in the array API standard: dtypes, special cases and errors."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import tracegraph
import tracegraph.numpy as tnp
from tests.cases.array_api import (
    ALL,
    SPECIAL,
    arguments_of,
    assert_special,
    domains,
    promoted,
    result_dtype,
)
from tests.helpers.array_api_signatures import OF_ONE, OF_TWO

DOMAINS = dict(domains())
Arrays = Sequence[np.ndarray[Any, Any]]


def ways(function: Callable[..., Any], *arrays: np.ndarray[Any, Any]) -> list[Any]:
    """The results for Arrays, and under jit, for values that are traced."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        eager = function(*map(tracegraph.asarray, arrays))
        return [eager, tracegraph.jit(function, device="host")(*arrays)]


def test_every_function_is_in_the_tables() -> None:
    assert sorted(DOMAINS) == sorted((*OF_ONE.split(), *OF_TWO.split()))


def sample(dtype: str, seed: int) -> np.ndarray[Any, Any]:
    """Small positive numbers: in the domain of most functions, and shifts that NumPy defines."""
    numbers = np.random.default_rng(seed).integers(1, 5, 6)
    if dtype == "bool":
        return numbers > 2
    array = numbers.astype(dtype)
    return array / dtype_of(dtype, 4) if np.dtype(dtype).kind in "fc" else array


def dtype_of(dtype: str, number: float) -> Any:
    return np.dtype(dtype).type(number)


@pytest.mark.parametrize("name", OF_ONE.split())
def test_the_dtypes_of_functions_of_one(name: str) -> None:
    function, reference = getattr(tnp, name), getattr(np, name)
    for dtype in DOMAINS[name]:
        x = sample(dtype, 0)
        for found in ways(function, x):
            assert np.asarray(found).dtype == result_dtype(name, dtype), dtype
            with np.errstate(all="ignore"):
                expected = reference(x)
            np.testing.assert_allclose(np.asarray(found), expected, rtol=2e-6)


@pytest.mark.parametrize("name", OF_TWO.split())
def test_the_dtypes_of_functions_of_two(name: str) -> None:
    function, reference = getattr(tnp, name), getattr(np, name)
    pairs = [
        (first, second)
        for first, second in itertools.product(DOMAINS[name], repeat=2)
        if promoted(first, second) is not None
    ]
    arrays = [(sample(first, 1), sample(second, 2)) for first, second in pairs]
    flat = [x for pair in arrays for x in pair]

    def all_pairs(*flat: Any) -> list[Any]:
        return [function(flat[k], flat[k + 1]) for k in range(0, len(flat), 2)]

    for results in ways(all_pairs, *flat):
        for (first, second), pair, found in zip(pairs, arrays, results, strict=True):
            dtype = promoted(first, second)
            assert dtype is not None
            assert np.asarray(found).dtype == result_dtype(name, dtype), (first, second)
            np.testing.assert_allclose(np.asarray(found), reference(*pair), rtol=2e-6)


@pytest.mark.parametrize(
    ("dtype", "name"), [(dtype, name) for dtype, cases in SPECIAL.items() for name in cases]
)
def test_special_cases(dtype: str, name: str) -> None:
    cases = SPECIAL[dtype][name]
    for found in ways(getattr(tnp, name), *arguments_of(cases, dtype)):
        assert_special(name, cases, np.asarray(found))


OUTSIDE = """
float32: bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift bitwise_invert
complex128: bitwise_and bitwise_or bitwise_xor floor_divide remainder atan2 hypot copysign logaddexp
complex64: nextafter signbit ceil floor trunc
bool: subtract negative positive sign
"""
REFUSED = [
    (name, line.partition(": ")[0])
    for line in OUTSIDE.strip().split("\n")
    for name in line.partition(": ")[2].split()
]


@pytest.mark.parametrize(("name", "dtype"), REFUSED)
def test_dtypes_out_of_the_domain_raise(name: str, dtype: str) -> None:
    x = sample(dtype, 3)
    arrays = [x] if name in OF_ONE.split() else [x, x]
    with pytest.raises(TypeError):
        getattr(np, name)(*arrays)
    function = getattr(tnp, name)
    with pytest.raises(TypeError):
        function(*map(tracegraph.asarray, arrays))
    with pytest.raises(TypeError):
        tracegraph.jit(function, device="host")(*arrays)


@pytest.mark.parametrize("name", OF_TWO.split())
def test_functions_of_two_broadcast(name: str) -> None:
    dtype = DOMAINS[name][-1]
    x, y = sample(dtype, 4).reshape(2, 3, 1), sample(dtype, 5)[:4]
    for found in ways(getattr(tnp, name), x, y):
        assert np.shape(found) == (2, 3, 4)
        np.testing.assert_allclose(np.asarray(found), getattr(np, name)(x, y), rtol=2e-6)
    for run in (tracegraph.asarray, np.asarray):
        with pytest.raises(ValueError, match=r"\(2, 3\).*\(2,\)"):
            tracegraph.jit(getattr(tnp, name), device="host")(
                run(np.ones((2, 3), dtype)), run(np.ones(2, dtype))
            )


@pytest.mark.parametrize("name", [*OF_ONE.split(), *OF_TWO.split()])
def test_arrays_without_axes_or_elements(name: str) -> None:
    function, reference, dtype = getattr(tnp, name), getattr(np, name), DOMAINS[name][0]
    count = 1 if name in OF_ONE.split() else 2
    for shape in ((), (0,), (2, 0, 3)):
        x = np.ones(shape, dtype)
        with np.errstate(all="ignore"):
            expected = np.asarray(reference(*[x] * count))
        for found in ways(function, *[x] * count):
            found = np.asarray(found)
            assert (found.dtype, found.shape) == (expected.dtype, shape)


def test_every_dtype_is_one_of_the_standard() -> None:
    assert [getattr(tnp, name) for name in ALL] == [np.dtype(name) for name in ALL]
