"""Python ints: exact within 64 bits, floats beyond where they meet floats, and else errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracegraph
from tracegraph import errors, fori_loop, jit, scan, while_loop

HASH = 14695981039346656037  # the offset of FNV-1a: it needs uint64
U8, I8 = np.uint8([1, 200]), np.int8([-5, 100])
I64, U64 = np.array([1, -2]), np.uint64([1, 2**64 - 1])
F16, F32, C64 = np.float16([1, 2]), np.float32([1, 2]), np.complex64([1j, 2])
MASK = np.array([True, False])


def _same(fun: Callable[..., Any], *args: Any) -> None:
    """Check values and dtypes against the eager run."""
    with np.errstate(all="ignore"):
        wanted = fun(*args)
    got = jit(fun, device="host")(*args)
    np.testing.assert_array_equal(np.asarray(got), wanted, strict=isinstance(wanted, np.ndarray))


@pytest.mark.parametrize(
    "fun",
    [
        lambda h: h % 10,
        lambda h: h + 1,
        lambda h: h - 1,
        lambda h: h * 1,
        lambda h: h // 3,
        lambda h: h / 3,
        lambda h: h ^ 0xFF,
        lambda h: h & 0xFFFFFFFF,
        lambda h: h >> 3,
        lambda h: h > -1,
        lambda h: h == 5,
        lambda h: 10 - h % 7,
        lambda h: tracegraph.cond(h > 3, lambda: h, lambda: 1),
        lambda h: fori_loop(0, 3, lambda i, s: s ^ h, 1),
    ],
)
def test_ints_that_need_uint64_are_exact(fun: Callable[..., Any]) -> None:
    assert int(jit(fun, device="host")(HASH)) == fun(HASH) or fun(HASH) == pytest.approx(HASH / 3)


def test_ints_of_both_signs_meet_in_uint64() -> None:
    mod = jit(lambda h, k: h % k, device="host")
    assert int(mod(HASH, 10)) == 7
    with pytest.raises(errors.IntegerRangeError, match=r"argument k .* int -3, .*uint64"):
        mod(HASH, -3)
    assert int(jit(lambda k: k ^ HASH, device="host")(5)) == HASH ^ 5


def test_an_eager_array_of_a_python_int_stays_exact() -> None:
    h = jit(lambda h: h + 1, device="host")(HASH)
    assert int(h % 10) == (HASH + 1) % 10


def test_a_negative_int_beside_one_of_uint64_is_named() -> None:
    with pytest.raises(errors.IntegerRangeError, match=r"int -1 .*uint64"):
        jit(lambda h: h + -1, device="host")(HASH)


@pytest.mark.parametrize("count", [62, 63])
def test_an_eager_carry_is_exact_or_an_error(count: int) -> None:
    loops: list[Callable[[], Any]] = [
        lambda: fori_loop(0, count, lambda i, s: s * 2, 1),
        lambda: while_loop(lambda c: c[0] < count, lambda c: (c[0] + 1, c[1] * 2), (0, 1))[1],
        lambda: scan(lambda s, x: (s * 2, x), 1, np.arange(count))[0],
    ]
    for loop in loops:
        if count < 63:
            assert loop() == 2**count
        else:
            with pytest.raises(errors.IntegerRangeError, match=rf"int {2**63}, .*int64"):
                loop()


def test_a_carry_that_uint64_holds_grows_into_it() -> None:
    def loop(n: Any) -> Any:
        return fori_loop(0, n, lambda i, s: s ^ (2**63 + 1), 1)

    assert [int(jit(loop, device="host")(n)) for n in (1, 2, 3)] == [loop(n) for n in (1, 2, 3)]


@pytest.mark.parametrize(
    ("fun", "x"),
    [
        (lambda x: x / 2**64, F32),
        (lambda x: x / 2**64, F16),
        (lambda x: x * 10**20, F16),
        (lambda x: x < 10**20, F32),
        (lambda x: x > 10**20, F16),
        (lambda x: x * 2**70, C64),
        (lambda x: x / 2**64, I64),
        (lambda x: np.copysign(x, -(2**70)), I64),
        (lambda x: x == 2**64, I64),
        (lambda x: x < 2**64, U64),
        (lambda x: x > -(2**70), U64),
        (lambda x: x != 2**64, U8),
        (lambda x: np.where(x < 2, x, 10**20), F32),
        (lambda x: np.maximum(x, 2**70), F32),
        (lambda x: np.clip(x, 0, 2**70), F32),
        (lambda x: np.full_like(x, 2**70), F32),
        (lambda x: np.isclose(x, 2**70), F32),
        (lambda x: np.pad(x, 1, constant_values=2**70), F32),
    ],
)
def test_ints_beyond_64_bits_meet_floats(fun: Callable[..., Any], x: Any) -> None:
    _same(fun, x)


@pytest.mark.parametrize(
    "fun",
    [
        lambda x: x + 2**64,
        lambda x: x * -(2**64),
        lambda x: np.maximum(x, 2**70),
        lambda x: np.where(x > 0, x, 10**20),
        lambda x: x * 10**400,
    ],
)
def test_ints_beyond_64_bits_are_named_beside_integers(fun: Callable[..., Any]) -> None:
    with pytest.raises(errors.IntegerRangeError, match=r"(?s)the Python int .* at test_python"):
        jit(fun, device="host")(I64)


def test_an_argument_beyond_64_bits_is_named() -> None:
    with pytest.raises(errors.IntegerRangeError, match=rf"argument k\['a'\] of .* int {2**70}"):
        jit(lambda k: k, device="host")({"a": 2**70})


@pytest.mark.parametrize(
    ("fun", "x"),
    [
        (lambda x: np.clip(x, 0, 300), U8),
        (lambda x: np.clip(x, -5, 300), U8),
        (lambda x: np.clip(x, None, 300), U8),
        (lambda x: np.clip(x, 0, 255), I8),
        (lambda x: np.clip(x, -300, 25), I8),
        (lambda x: np.clip(x, 0, 2**70), I64),
        (lambda x: np.clip(x, -1, 2**64), U64),
        (lambda x: np.where(x < 5, x, -1), U8),
        (lambda x: np.where(x < 5, 300, x), I8),
        (lambda x: np.where(x < 5, x, 2**63), I64),
        (lambda x: np.select([x < 5], [x], -1), U8),
        (lambda x: np.pad(x, 1, constant_values=300), U8),
    ],
)
def test_limits_and_choices_take_any_int(fun: Callable[..., Any], x: Any) -> None:
    _same(fun, x)


@pytest.mark.parametrize("k", [300, -300, 7])
def test_limits_and_choices_take_any_traced_int(k: int) -> None:
    _same(lambda x, k: np.where(x < 5, x, k), U8, k)
    if k > 0:
        _same(lambda x, k: np.clip(x, 0, k), U8, k)
    if k < 200:
        _same(lambda x, k: np.clip(x, k, 200), U8, k)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, np.complex64, np.int64])
@pytest.mark.parametrize("decimals", [400, 309, 308, 5, -308, -400])
def test_round_to_any_number_of_decimals(dtype: type, decimals: int) -> None:
    _same(lambda x: np.round(x, decimals), np.array([1.5, 0.0, -3.25]).astype(dtype))
