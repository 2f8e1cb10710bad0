"""Memory on the host: figures, a budget, and starting over."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tracegraph
from lowering.host.executable import HostExecutable
from tests.helpers.threads import collect_garbage, in_threads
from tracegraph import errors, memory
from tracegraph.concurrency.weak_set import ConcurrentWeakSet
from tracegraph.staging import executable_cache

pytestmark = pytest.mark.usefixtures("each_host")


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(executable_cache, "_cached", ConcurrentWeakSet())
    yield
    memory.set_budget(None)


def with_scratch(name: str) -> Any:
    """A function on the host whose executable holds at least 80,000 bytes."""

    def f(x: Any) -> Any:
        return tracegraph.numpy.cumsum(tracegraph.numpy.zeros(10_000) + x)[::-1].sum()

    f.__name__ = f.__qualname__ = name
    return tracegraph.jit(f, device="host")


def test_what_executables_hold_is_counted() -> None:
    collect_garbage()  # lest executables of other tests go meanwhile
    before = tracegraph.memory_stats("host")
    f = with_scratch("f")
    f(1.0)
    after = tracegraph.memory_stats("host")
    assert after["graphs"] == before["graphs"] + 1
    assert after["arenas"] >= before["arenas"] + 80_000
    assert after["high_water"] >= after["arenas"] + after["constants"]
    assert after["arrays"] == 0


def test_a_device_that_does_not_exist_is_named() -> None:
    with pytest.raises(ValueError, match="abacus"):
        tracegraph.memory_stats("abacus")


def test_a_budget_closes_the_least_recently_used_executable() -> None:
    f, g, h = (with_scratch(name) for name in "fgh")
    assert f(1.0) == g(1.0)
    held = executable_cache.held(executable_cache.least_recent_first())
    memory.set_budget(held)
    f(2.0)
    h(1.0)
    assert [k.stats()["evictions"] for k in (f, g, h)] == [0, 1, 0]
    assert g(1.0) == f(1.0)
    assert (g.stats()["traces"], g.stats()["builds"], g.stats()["launches"]) == (1, 2, 2)


def test_a_function_that_is_collected_does_not_count() -> None:
    f = with_scratch("f")
    f(1.0)
    assert executable_cache.held(executable_cache.least_recent_first()) > 0
    del f
    assert executable_cache.held(executable_cache.least_recent_first()) == 0


def test_a_function_whose_callback_runs_others_is_not_evicted_meanwhile() -> None:
    inner = with_scratch("inner")
    graphs = []

    def show(*_: Any) -> None:
        inner(1.0)
        graphs.append(tracegraph.memory_stats("host")["graphs"])

    def outer(x: Any) -> Any:
        return tracegraph.fori_loop(0, 3, lambda i, c: c + x, x, progress=show)

    before = tracegraph.memory_stats("host")["graphs"]
    f = tracegraph.jit(outer, device="host")
    memory.set_budget(0)
    assert f(1.0) == 4.0
    assert graphs
    assert set(graphs) == {before + 2}
    assert f.stats()["evictions"] == 0


def test_what_is_in_use_when_it_is_to_be_evicted_is_not_built_by_other_calls(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    f = with_scratch("f")
    f(1.0)

    def in_use(executable: HostExecutable) -> bool:
        f(2.0)  # as another thread may
        return False

    monkeypatch.setattr(HostExecutable, "close_idle", in_use)
    memory.set_budget(0)
    counts = f.stats()
    assert (counts["builds"], counts["launches"], counts["evictions"]) == (1, 2, 0)


def test_launches_of_what_is_being_evicted_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    f = with_scratch("f")
    f(1.0)
    seen: list[int] = []
    reader = threading.Thread(target=lambda: seen.append(f.stats()["launches"]))
    stats = HostExecutable.stats

    def read_meanwhile(executable: HostExecutable) -> dict[str, int]:
        if reader.ident is None:
            reader.start()
            reader.join(0.1)
        return stats(executable)

    monkeypatch.setattr(HostExecutable, "stats", read_meanwhile)
    memory.set_budget(0)
    reader.join()
    assert f.stats()["evictions"] == 1
    assert seen == [1]


def test_reset_forgets_what_was_traced_and_closes_all() -> None:
    factor = 2.0
    f = tracegraph.jit(lambda x: x * factor, device="host")
    assert f(np.ones(2)).tolist() == [2.0, 2.0]
    compiled = f.lower(np.ones(2)).compile()
    factor = 3.0
    assert f(np.ones(2)).tolist() == [2.0, 2.0]
    tracegraph.reset()
    assert tracegraph.memory_stats("host")["graphs"] == 0
    with pytest.raises(errors.ClosedError, match="compile it again"):
        compiled(np.ones(2))
    assert f(np.ones(2)).tolist() == [3.0, 3.0]
    counts = f.stats()
    assert (counts["builds"], counts["launches"], counts["evictions"]) == (2, 3, 0)


def test_a_call_in_whose_middle_a_reset_comes_leaves_nothing_of_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = [1.0]
    f = tracegraph.jit(lambda x: x + table[0], device="host")
    x = np.float64(1)  # no call with it is run by an entry
    assert f(x) == 2
    run = HostExecutable.__call__

    def reset_first(*args: Any) -> Any:  # as another thread may
        monkeypatch.setattr(HostExecutable, "__call__", run)
        table[0] = 2.0
        tracegraph.reset()
        return run(*args)

    monkeypatch.setattr(HostExecutable, "__call__", reset_first)
    assert f(x) == 3
    assert f(x) == 3
    assert (f.stats()["traces"], f.stats()["launches"]) == (2, 3)


def test_threads_get_their_results_while_executables_come_and_go() -> None:
    functions = [with_scratch(name) for name in "fgh"]
    wanted = [float(f(1.0)) for f in functions]
    memory.set_budget(200_000)

    def work(number: int) -> None:
        for i in range(30):
            k = (i * (number + 1)) % len(functions)
            assert float(functions[k](1.0)) == wanted[k]
            if i % 10 == number:
                tracegraph.reset()

    in_threads(3, work)
