"""Keys and bits: the published values of Threefry, and the numbers that JAX documents."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracegraph
from tests.helpers.threefry import MASK, threefry
from tests.helpers.traced import assert_traced_equals_eager
from tracegraph import random
from tracegraph.arrays.eager import apply
from tracegraph.ir.op import get


def bits64(key: Any, count: int) -> list[int]:
    pairs = [threefry(tuple(map(int, key)), i) for i in range(count)]
    return [x << 32 | y for x, y in pairs]


@pytest.mark.parametrize(
    ("counter", "key", "wanted"),
    [
        (0, (0, 0), 0x6B20015999BA4EFE),
        (2**64 - 1, (MASK, MASK), 0x1CB996FCBB002BE7),
        (0x243F6A8885A308D3, (0x13198A2E, 0x03707344), 0xC4923A9C483DF7A0),
    ],
)
def test_threefry_has_the_published_values(counter: int, key: tuple[int, int], wanted: int) -> None:
    """The known answers of Random123, the library of Threefry's authors."""
    words = np.array(key, np.uint32)
    assert int(apply(get("threefry"), words[0], words[1], np.uint64(counter))) == wanted
    assert threefry(key, counter) == (wanted >> 32, wanted & MASK)


def test_keys_are_the_words_of_their_seeds() -> None:
    for seed, wanted in [(42, [0, 42]), (-1, [MASK, MASK]), (2**40 + 5, [256, 5])]:
        found = random.key(seed)
        assert found.dtype == np.uint32
        np.testing.assert_array_equal(found, wanted)
        np.testing.assert_array_equal(random.PRNGKey(seed), wanted)
    np.testing.assert_array_equal(random.key(np.int32(-1)), [0, MASK])
    np.testing.assert_array_equal(random.key(2**64 - 1), [MASK, MASK])


def test_numbers_are_those_that_jax_documents() -> None:
    wanted = [[1797259609, 2579123966], [928981903, 3453687069]]
    np.testing.assert_array_equal(random.split(random.key(0)), wanted)
    wanted = [[1832780943, 270669613], [64467757, 2916123636]]
    np.testing.assert_array_equal(random.split(random.key(42)), wanted)
    found = random.uniform(random.key(0), (4,), np.float32)
    np.testing.assert_array_equal(found, np.float32([0.947667, 0.9785799, 0.33229148, 0.46866846]))
    found = random.normal(random.key(42), (), np.float32)
    np.testing.assert_allclose(found, -0.028304616, rtol=2e-7)


def test_bits_count_through_the_array_in_row_major_order() -> None:
    key = random.key(1701)
    wanted = np.array(bits64(key, 12), np.uint64)
    np.testing.assert_array_equal(random.bits(key, (3, 4)), wanted.reshape(3, 4))
    mixed = (wanted >> np.uint64(32)).astype(np.uint32) ^ wanted.astype(np.uint32)
    for dtype in (np.uint8, np.uint16, np.uint32):
        found = random.bits(key, 12, dtype)
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, mixed.astype(dtype))
    assert random.bits(key).shape == ()
    assert random.bits(key, (0, 3)).shape == (0, 3)


def test_splitting_and_folding_in() -> None:
    key = random.key(7)
    wanted = np.array([threefry((0, 7), i) for i in range(6)], np.uint32)
    np.testing.assert_array_equal(random.split(key, 6), wanted)
    np.testing.assert_array_equal(random.split(key, (2, 3)), wanted.reshape(2, 3, 2))
    for data in (0, 5, np.uint8(5), 2**40 + 5, -1):
        folded = threefry((0, 7), int(data) & MASK)
        np.testing.assert_array_equal(random.fold_in(key, data), folded)


def test_traced_keys_give_the_same_bits() -> None:
    def draw(key: Any, seed: Any) -> Any:
        first, second = random.split(key)
        made = random.fold_in(random.key(seed), seed)
        return random.bits(first, (3,)), random.bits(second, 5, np.uint16), made

    assert_traced_equals_eager(draw, random.key(3), 11)
    jitted = tracegraph.jit(draw, device="host")(random.key(3), 11)
    for found, wanted in zip(jitted, draw(random.key(3), 11), strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_keys_are_checked() -> None:
    for wrong in (7, np.array([1, 2]), random.split(random.key(0))):
        with pytest.raises(TypeError, match=r"tracegraph\.random\.key\(seed\)"):
            random.bits(wrong)
    for seed in (1.5, [1]):
        with pytest.raises(TypeError, match="must be an integer"):
            random.key(seed)
    with pytest.raises(OverflowError, match="64 bits"):
        random.key(2**64)
    with pytest.raises(TypeError, match="must be an integer"):
        random.fold_in(random.key(0), 0.5)
    with pytest.raises(ValueError, match="must not be negative"):
        random.split(random.key(0), -1)
    with pytest.raises(TypeError, match="static integers"):
        random.bits(random.key(0), (2.5,))
    with pytest.raises(TypeError, match="unsigned"):
        random.bits(random.key(0), dtype=np.int32)
    with pytest.raises(TypeError, match="threefry takes a key of two u32"):
        get("threefry").type_rule(*[tracegraph.ArrayType(np.dtype(np.uint32), ())] * 3)


def test_no_array_of_bits_is_stored() -> None:
    """Drawing is part of the kernel that uses the numbers."""

    def noisy(key: Any, x: Any) -> Any:
        return x + 0.1 * random.normal(key, x.shape, x.dtype)

    for dtype in (np.float32, np.float64):
        x = np.zeros((100, 10), dtype)
        plan = tracegraph.jit(noisy, device="host").trace(random.key(0), x).lower().plan
        assert "arena: 0 bytes" in str(plan)
        assert str(plan).count(": kernel") == 1


def test_loops_draw_by_the_number_of_the_iteration() -> None:
    def walk(key: Any) -> Any:
        def step(i: Any, x: Any) -> Any:
            return x + random.rademacher(random.fold_in(key, i), x.shape)

        return tracegraph.fori_loop(0, 50, step, np.zeros(8, np.int64))

    key = random.key(9)
    wanted = sum(random.rademacher(random.fold_in(key, i), (8,)) for i in range(50))
    np.testing.assert_array_equal(tracegraph.jit(walk, device="host")(key), wanted)


def test_constant_keys_do_not_make_constant_arrays() -> None:
    def draw() -> Any:
        return random.uniform(random.key(0), (1000,))

    program = tracegraph.jit(draw, device="host").trace().program
    assert "threefry" in str(program)
