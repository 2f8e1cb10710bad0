"""The pool of large results: a block serves the next result once no array uses it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tracegraph
from lowering.host import result_pool as pool
from lowering.host.arena import POISON
from lowering.host.executable import HostExecutable
from lowering.host.result_pool import LEAST_BYTES, MOST_BYTES, RESULTS, ResultPool
from tests.helpers.compiled import host_jit
from tests.helpers.running import lowered
from tracegraph import ArrayType

LARGE = LEAST_BYTES // 4
"""Elements of the smallest float32 array that a call may get."""


@pytest.fixture(autouse=True)
def nothing_kept() -> Iterator[None]:
    RESULTS.clear()
    yield
    RESULTS.clear()


def address(array: Any) -> int:
    return int(np.asarray(array).ctypes.data)


def test_the_next_result_reuses_the_memory_of_one_that_is_gone() -> None:
    double, negative = host_jit(lambda x: x * 2), host_jit(np.negative)
    x = np.arange(LARGE, dtype=np.float32)
    result = double(x)
    memory = address(result)
    assert RESULTS.free_bytes == 0
    del result
    assert RESULTS.free_bytes == LEAST_BYTES
    result = negative(x.reshape(2, -1))
    assert address(result) == memory
    np.testing.assert_array_equal(result, -x.reshape(2, -1))


PARTS: dict[str, Callable[[Any], Any]] = {
    "the array": np.asarray,
    "a view": lambda r: np.asarray(r)[3:],
    "a view of a view": lambda r: np.asarray(r).reshape(2, -1)[:, 1:].T,
    "another dtype": lambda r: np.asarray(r).view(np.uint8),
    "a buffer": lambda r: memoryview(np.asarray(r)),
    "DLPack": np.from_dlpack,
    "part of it": lambda r: r[1:],
}


@pytest.mark.parametrize("part", PARTS)
def test_the_memory_of_a_live_array_is_not_reused(part: str) -> None:
    double = host_jit(lambda x: x * 2)
    x = np.arange(LARGE, dtype=np.float32)
    held = PARTS[part](double(x))
    before = np.array(held)
    others = [double(x + 1) for _ in range(3)]
    np.testing.assert_array_equal(held, before)
    assert RESULTS.free_bytes == 0
    del held, others
    assert RESULTS.free_bytes == 4 * LEAST_BYTES


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint64", "float16", ml_dtypes.bfloat16, "float64", "complex128"]
)
def test_every_dtype_is_pooled(dtype: Any) -> None:
    x = np.zeros(LEAST_BYTES // np.dtype(dtype).itemsize, dtype)
    result = host_jit(lambda x: x[::-1])(x)
    assert result.dtype == dtype
    np.testing.assert_array_equal(result, x)
    del result
    assert RESULTS.free_bytes == x.nbytes


def test_small_and_very_large_results_are_numpys() -> None:
    for type_ in (ArrayType("float32", (LARGE - 1,)), ArrayType("uint8", (MOST_BYTES + 1,))):
        assert not pool.is_pooled(type_)
    result = host_jit(lambda x: x + x)(np.ones(LARGE - 1, np.float32))
    assert result.data.flags.owndata
    del result
    assert RESULTS.free_bytes == 0


def test_results_are_row_major_aligned_and_read_only() -> None:
    data = np.asarray(host_jit(lambda x: x.T + 1)(np.zeros((64, LARGE // 64), np.float32)))
    assert data.flags.c_contiguous
    assert data.flags.aligned
    assert not data.flags.writeable


def test_a_result_begins_at_another_place_in_its_page_than_the_last() -> None:
    empty = ResultPool().maker(ArrayType("float32", (LARGE,)))
    arrays = [empty() for _ in range(6)]
    places = [address(array) % pool.PAGE for array in arrays]
    assert places == [*pool.PLACES, *pool.PLACES]


def test_whoever_holds_many_results_gets_new_memory_without_a_search() -> None:
    own = ResultPool()
    empty = own.maker(ArrayType("uint8", (1000,)))
    held = [empty() for _ in range(100)]
    transient = {address(empty()) for _ in range(100)}
    assert not transient & set(map(address, held))
    del held
    assert own.free_bytes >= 100_000


def test_so_much_is_kept_of_each_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "MOST_BYTES", 3000)
    own = ResultPool()
    empty = own.maker(ArrayType("uint8", (1000,)))
    arrays = [empty() for _ in range(5)]
    del arrays
    assert own.free_bytes == 3000


def test_new_memory_is_allocated_when_not_too_much_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "MOST_BYTES", 3000)
    own = ResultPool()
    arrays = [own.maker(ArrayType("uint8", (size,)))() for size in (1000, 1001, 1002)]
    del arrays
    assert own.free_bytes == 3003
    new = own.maker(ArrayType("uint8", (999,)))()
    assert own.free_bytes == 0
    del new
    assert own.free_bytes == 999


def test_what_is_kept_makes_room_where_memory_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    own = ResultPool()
    kept = own.maker(ArrayType("uint8", (1000,)))()
    del kept

    memory = pool.ArrayMemory

    def allocate(nbytes: int, dtype: Any) -> pool.ArrayMemory:
        if own.free_bytes or nbytes > 10_000:
            raise MemoryError
        return memory(nbytes, dtype)

    monkeypatch.setattr(pool, "ArrayMemory", allocate)
    for _ in range(2):
        assert own.maker(ArrayType("uint8", (5000,)))().shape == (5000,)
        with pytest.raises(MemoryError):
            own.maker(ArrayType("uint8", (10_000,)))()


def test_trim_and_reset_give_it_back() -> None:
    x = np.zeros(LARGE, np.float32)
    for give_back in (tracegraph.memory.trim, tracegraph.reset):
        host_jit(lambda x: x + 1)(x)
        assert tracegraph.memory_stats("host")["cached"] == LEAST_BYTES
        give_back()
        assert tracegraph.memory_stats("host")["cached"] == 0


def test_what_is_never_written_shows_in_memory_that_was_used_before() -> None:
    x = np.zeros(LARGE, np.float32)
    plan = lowered(lambda x: x + 1, x).plan
    HostExecutable(plan)([x])
    idle = replace(plan, graph=replace(plan.graph, nodes=(), edges=()))
    (result,) = HostExecutable(idle, poison=True)([x])
    assert (result.view(np.uint8) == POISON).all()


def test_threads_get_memory_of_their_own() -> None:
    f = host_jit(lambda x: x * 3 + 1)

    def work(number: int) -> bool:
        x = np.full(LARGE, number, np.float32)
        results = [f(x) for _ in range(3)]
        return all((np.asarray(result) == number * 3 + 1).all() for result in results)

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(work, range(200)))
