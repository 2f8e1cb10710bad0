"""Chunks of nests: results have the same bits for any number of threads."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from lowering.native.chunks import chunked_schedule_of
from lowering.native.module import modules_of
from lowering.native.nests.lanes import BLOCK
from lowering.native.report import schedules_text
from lowering.native.schedule import schedule_of
from lowering.plan.nodes import KernelNode, walk
from lowering.plan.plan import Plan
from tests.corpus import CASES
from tests.helpers.agreement import assert_agrees
from tests.helpers.running import eager
from tests.plan.native.chunked import chunked_nests, small_chunks, threads
from tests.plan.native.running_natively import compiled, native_plan
from tracegraph import tree
from tracegraph.testing import RandomProgram, programs

Function = Callable[..., Any]

RANDOM = np.random.default_rng(0)
ROWS, COLUMNS, LONG = RANDOM.normal(size=(37, 300)), RANDOM.normal(size=(9, 1100)), 7 * BLOCK + 5
LINE, SQUARE = RANDOM.normal(size=LONG), RANDOM.normal(size=(150, 150))


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def laplace(u: Any) -> Any:
    return np.roll(u, 1, 0) + np.roll(u, -1, 0) + np.roll(u, 1, 1) + np.roll(u, -1, 1) - 4 * u


FORMS: dict[str, tuple[Function, Any]] = {
    "a map": (lambda x: np.exp(x) * np.sin(x), LINE),
    "a map with cuts": (laplace, SQUARE),
    "a map in tiles": (lambda x: x.T + 1, SQUARE),
    "a map of far operands": (lambda x: np.sin(x) * np.sin(x[::-1] * 1e9), LINE),
    "unrolled folds": (lambda x: (x[:, :8] * x[:, 8:16]).sum(1), ROWS),
    "folds of rows": (lambda x: x.sum(1), ROWS),
    "folds of columns": (lambda x: (x.sum(0), x.argmax(0)), COLUMNS),
    "folds of few columns": (lambda x: x.sum(0), ROWS[:, :20]),
    "passes over rows": (softmax, ROWS),
    "scans of rows": (lambda x: np.cumsum(x, 1), ROWS),
    "scans of columns": (lambda x: np.cumsum(x, 0), COLUMNS),
    "a sum": (lambda x: x.sum(), LINE),
    "a sum of 16 bits": (lambda x: x.sum(), LINE.astype(np.float16)),
    "a complex sum": (lambda x: (x + x[::-1] * 1j).sum(), LINE),
    "a complex product": (lambda x: (1 + x * 1e-3j).prod(), LINE),
    "a sum of two axes": (lambda x: (x + x.T).sum(), SQUARE),
    "few long sums": (lambda x: (x[0] + x[1]).sum(1), RANDOM.normal(size=(2, 3, 3000))),
    "integers": (lambda x: ((x > 0).sum(), (x * 1e6).astype(np.int64).sum()), LINE),
    "truth": (lambda x: ((x > -9).all(), (x > 9).any()), LINE),
    "extremes": (lambda x: (x.max(), x.min(), x.sum(), (x * x).argmax()), LINE),
    "the first extreme of many": (lambda x: (x.argmin(), x.argmax()), np.round(LINE)),
    "no extreme": (lambda x: x.argmax(), np.full(LONG, -np.inf)),
    "the first NaN": (lambda x: x.argmax(), np.where(LINE > 2, np.nan, LINE)),
    "a complex extreme": (lambda x: (np.round(x) + 1j * x).argmax(), LINE),
    "passes over one row": (softmax, LINE),
    "a variance": (lambda x: (x - x.mean()).var(), LINE),
}


def runs(plan: Plan, arguments: Any) -> dict[int, list[np.ndarray]]:
    """The results of a plan with 1, 2 and 3 threads."""
    executable = compiled(plan)
    found = {}
    for number in (1, 2, 3):
        with threads(number):
            found[number] = [np.array(each) for each in executable(tree.leaves(arguments))]
    return found


def assert_same_bits(found: dict[int, list[np.ndarray]]) -> None:
    first, *others = ([each.tobytes() for each in results] for results in found.values())
    assert all(each == first for each in others)


@pytest.mark.parametrize("name", FORMS)
def test_each_form_of_a_nest_is_carried_out_in_chunks(name: str) -> None:
    function, argument = FORMS[name]
    with small_chunks():
        plan = native_plan(function, argument)
        assert chunked_nests(plan)
        found = runs(plan, [argument])
    assert_same_bits(found)
    wanted = tree.leaves(eager(function, argument))
    for got, expected in zip(found[3], wanted, strict=True):
        ulps = 1 << 10 if got.dtype.itemsize > 2 else 64
        assert_agrees(got, np.asarray(expected), ulps)


def test_parts_of_a_large_plan_have_nests_with_chunks() -> None:
    def function(x: Any) -> Any:
        sums = []
        for shift in range(14):
            x = np.roll(np.exp(-x * x) * np.sin(x + shift), shift)
            sums.append(x.sum())
        return np.stack(sums)

    x = np.linspace(-2, 2, 3 * BLOCK)
    plan = native_plan(function, x)
    (wanted,) = compiled(plan)([x])
    with small_chunks():
        _, *parts = modules_of(plan).modules
        found = runs(plan, [x])
    assert parts
    assert all("@nest0" in part.text for part in parts)
    assert {results[0].tobytes() for results in found.values()} == {np.asarray(wanted).tobytes()}


@pytest.mark.parametrize("length", [2 * BLOCK, 3 * BLOCK, 5 * BLOCK + 1, 40 * BLOCK + 33])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
def test_a_sum_has_the_bits_that_it_has_without_chunks(dtype: type, length: int) -> None:
    x = np.random.default_rng(length).normal(size=length).astype(dtype)
    plan = native_plan(lambda x: x.sum(), x)
    assert not chunked_nests(plan)
    (wanted,) = compiled(plan)([x])
    with small_chunks():
        assert chunked_nests(plan)
        found = runs(plan, [x])
    assert {results[0].tobytes() for results in found.values()} == {np.asarray(wanted).tobytes()}


@pytest.mark.parametrize("name", sorted(CASES)[::5])
def test_the_corpus_has_the_same_bits_for_any_number_of_threads(name: str) -> None:
    case = CASES[name]
    with small_chunks():
        found = runs(native_plan(case.function, *case.arguments), case.arguments)
    assert_same_bits(found)
    wanted = tree.leaves(eager(case.function, *case.arguments))
    for got, expected in zip(found[2], wanted, strict=True):
        assert_agrees(got, np.asarray(expected), case.ulps)


@settings(max_examples=25)
@given(program=programs())
def test_random_programs_have_the_same_bits_for_any_number_of_threads(
    program: RandomProgram,
) -> None:
    with small_chunks():
        plan = native_plan(program.function, *program.arguments)
        assert_same_bits(runs(plan, program.arguments))


def nest_of(function: Function, *arguments: Any) -> Any:
    plan = native_plan(function, *arguments)
    (nest,) = (n for k in walk(plan.graph) if isinstance(k, KernelNode) for n in k.kernel.nests)
    return nest


def test_small_nests_have_no_chunks() -> None:
    assert chunked_schedule_of(nest_of(lambda x: x + 1, np.zeros(1000))).chunks is None


def test_chunks_are_of_the_outermost_loop_that_has_enough_steps() -> None:
    deep = nest_of(lambda x: np.roll(x, 1, (0, 1, 2)), np.zeros((4, 500, 300)))
    assert [loop.extent for loop in schedule_of(deep).points] == [4, 500, 300]
    chunks = chunked_schedule_of(deep).chunks
    assert chunks is not None
    assert chunks.loop == 1


def test_a_long_sum_has_chunks_of_whole_parts_of_its_tree() -> None:
    chunks = chunked_schedule_of(nest_of(lambda x: x.sum(), np.zeros(1_000_000))).chunks
    assert chunks is not None
    assert chunks.loop is None
    assert chunks.size.bit_count() == 1
    assert (
        (chunks.count - 1) * chunks.size * BLOCK < 1_000_000 <= chunks.count * chunks.size * BLOCK
    )


def test_points_that_may_meet_are_not_divided() -> None:
    def histogram(x: Any, at: Any) -> Any:
        out = x * 0
        np.add.at(out, at, 1.0)
        return out

    at = RANDOM.integers(0, 50, 3000)
    with small_chunks():
        plan = native_plan(histogram, np.zeros(50), at)
        found = runs(plan, [np.zeros(50), at])
        text = schedules_text(plan)
    assert_same_bits(found)
    np.testing.assert_array_equal(found[3][0], np.bincount(at, minlength=50))
    assert "i0 < 3000; threads" not in text


def test_explain_says_what_threads_share() -> None:
    text = schedules_text(native_plan(lambda x: np.exp(x), np.zeros(100_000)))
    assert "i0 < 100000; threads: " in text


def test_code_of_chunks_has_no_address_and_no_number_of_threads() -> None:
    texts = set()
    for number in (1, 3):
        with threads(number):
            texts.add(modules_of(native_plan(lambda x: np.exp(x).sum(), np.zeros(100_000))).text)
    (text,) = texts
    assert "inttoptr" not in text


def test_long_nests_run_in_several_calls_of_the_pool_with_polls_between_them() -> None:
    short, long = (
        modules_of(native_plan(np.exp, np.broadcast_to(1.0, (length,)))).text
        for length in (100_000, 1_000_000_000)
    )
    all_at_once = re.compile(r"call void %r\d+\(.*ptr null, i64 0, i64 \d+\)")
    assert all_at_once.search(short)
    assert "call i64 @poll" not in short
    assert not all_at_once.search(long)
    assert "call i64 @poll" in long
