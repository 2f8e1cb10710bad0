"""Sums of floats: one order of additions, whatever vectors the processor has."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracegraph
from lowering.native.module import modules_of
from lowering.native.nests.lanes import BLOCK, LANES, WIDTH, blocks_of
from tests.plan.native.running_natively import native, native_plan

LENGTHS = [17, 31, 32, 33, 100, 1000, 1024, 1025, 2048, 3000, 5 * 1024 + 7]


def tree(values: Any) -> Any:
    """The sum of lanes: four vectors in pairs, then the halves of a vector."""
    vectors = values.reshape(-1, WIDTH)
    while len(vectors) > 1:
        vectors = vectors[::2] + vectors[1::2]
    (lanes,) = vectors
    while len(lanes) > 1:
        half = len(lanes) // 2
        lanes = lanes[:half] + lanes[half:]
    return lanes[0]


def block_sum(values: Any) -> Any:
    """The sum of a block: element i in lane i % 32."""
    padded = np.zeros(-(-len(values) // LANES) * LANES, values.dtype)
    padded[: len(values)] = values
    lanes = np.zeros(LANES, values.dtype)
    for group in padded.reshape(-1, LANES):
        lanes = lanes + group
    return tree(lanes)


def pairwise_sum(values: Any) -> Any:
    """The sum of blocks, in pairs."""
    blocks = [values[start : start + BLOCK] for start in range(0, len(values), BLOCK)]
    if len(blocks) == 1:
        return block_sum(values)
    levels: dict[int, Any] = {}
    for count, each in enumerate(map(block_sum, blocks)):
        level, total = 0, each
        while count >> level & 1:
            total = levels.pop(level) + total
            level += 1
        levels[level] = total
    total = values.dtype.type(0)
    for level in sorted(levels):
        total = levels[level] + total
    return total


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("length", LENGTHS)
def test_the_order_of_additions_is_fixed(length: int, dtype: Any) -> None:
    x = np.random.default_rng(length).normal(size=length).astype(dtype)
    assert native(np.sum, x).tobytes() == pairwise_sum(x).tobytes()
    assert native(lambda x: np.sum(3 * x), x).tobytes() == pairwise_sum(3 * x).tobytes()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("length", [17, 40, 95, 1000, 2500])
def test_what_is_read_as_vectors_is_added_in_the_same_order(length: int, dtype: Any) -> None:
    x, y = np.random.default_rng(length).normal(size=(2, length)).astype(dtype)
    a = dtype(1.7)
    for function in (
        lambda x, y, a: x * y,
        lambda x, y, a: np.square(x - a * y),
        lambda x, y, a: -x + y * y,
        lambda x, y, a: x[::-1] * y,
        lambda x, y, a: np.sqrt(x * x) - y,
    ):
        found = native(lambda *given, f=function: np.sum(f(*given)), x, y, a)
        assert found.tobytes() == pairwise_sum(function(x, y, a)).tobytes()


@pytest.mark.parametrize("shape", [(9, 17), (40, 33), (5, 1300)])
def test_a_matrix_and_a_vector_are_sums_of_rows(shape: tuple[int, int]) -> None:
    random = np.random.default_rng(0)
    a, x = random.normal(size=shape), random.normal(size=shape[1])
    assert native(lambda a, x: a @ x, a, x).tolist() == [pairwise_sum(row * x) for row in a]


def test_a_pass_reads_what_it_overwrites_before() -> None:
    def halved(x: Any) -> Any:
        def step(state: Any) -> Any:
            x, _ = state
            following = 0.5 * x
            return following, np.sum((x - following) * x)

        def unfinished(state: Any) -> Any:
            return state[1] > 1e-3

        return tracegraph.while_loop(unfinished, step, (x, np.inf))

    x = np.random.default_rng(0).normal(size=3000)
    found, total = native(halved, x)
    wanted, square = x, np.inf
    while square > 1e-3:
        wanted, square = 0.5 * wanted, pairwise_sum((wanted - 0.5 * wanted) * wanted)
    assert found.tobytes() == wanted.tobytes()
    assert total == square


def test_parts_of_complex_numbers_are_summed_alike() -> None:
    random = np.random.default_rng(0)
    x: Any = random.normal(size=1500) + 1j * random.normal(size=1500)
    found = native(np.sum, x)
    assert (found.real, found.imag) == (pairwise_sum(x.real.copy()), pairwise_sum(x.imag.copy()))


def test_rows_of_a_matrix_are_summed_alike() -> None:
    x = np.random.default_rng(0).normal(size=(3, 1300))
    found = native(lambda x: x.sum(axis=1), x)
    assert [pairwise_sum(row) for row in x] == found.tolist()


@pytest.mark.parametrize("function", [np.sum, np.var, lambda x: np.cumsum(x), lambda x: x @ x])
def test_no_instruction_may_be_reordered_or_fused(function: Any) -> None:
    text = modules_of(native_plan(function, np.ones(4096))).text
    for flag in ("reassoc", "fast", "contract", "nsz", "arcp", "nnan", "ninf", "afn"):
        assert f" {flag} " not in text


def test_text_has_no_addresses_and_is_the_same_again() -> None:
    plan = native_plan(lambda x: np.sin(x) @ x + np.sort(x), np.ones(4096))
    text = modules_of(plan).text
    assert "inttoptr" not in text
    assert modules_of(plan).text == text


def test_blocks_hold_whole_steps_of_the_outer_loop() -> None:
    for extents in ([5000], [3, 5000], [1000, 7], [2, 3, 4], [40, 30, 20]):
        split, steps, inner = blocks_of(extents)
        assert steps * inner <= BLOCK
        assert inner == np.prod(extents[split + 1 :], dtype=int)
