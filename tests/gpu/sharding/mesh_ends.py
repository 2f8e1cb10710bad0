"""How programs on a mesh of GPUs end: stopped, failed, interrupted, abandoned.

`python -m tests.gpu.sharding.mesh_ends SIZE NAME...` runs some on 2 or 4 GPUs. It ends with a
traceback of all threads if devices wait for one another.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracegraph
from lowering.plan.target import features
from lowering.plan.target.overrides import override
from tests.programs.sharded import solve
from tracegraph import Mesh, PartitionSpec, errors, shard

P = PartitionSpec
SECONDS = 60
"""After this time a program has not ended by itself."""

SIZE = int(sys.argv[1]) if __name__ == "__main__" else 2
"""How many GPUs there are."""

B = np.random.default_rng(0).standard_normal(200)


def sharded(fun: Any, in_specs: Any, out_specs: Any, device: str = "cuda") -> Any:
    """A function on a mesh of all devices."""
    mesh = Mesh(SIZE, "x", device=device)
    return tracegraph.jit(shard(fun, mesh=mesh, in_specs=in_specs, out_specs=out_specs))


def by_sums(x: Any) -> Any:
    """An endless loop around a sum; the steps of each device."""

    def step(state: Any) -> Any:
        x, total, steps = state
        return 0.5 * (x + total), tracegraph.pmean(np.sum(x), "x"), steps + 1

    state = tracegraph.while_loop(lambda s: s[1] > 0, step, (x, 1.0, np.zeros_like(x, np.int64)))
    return state[2]


def by_halos(x: Any) -> Any:
    """A long counted loop around moves alone."""

    def step(_: Any, state: Any) -> Any:
        x, steps = state
        before, behind = tracegraph.halo(x, "x")
        return 0.5 * np.concatenate([before, x[1:-1], behind]), steps + 1

    x, steps = tracegraph.fori_loop(0, 1 << 40, step, (x, np.zeros_like(x, np.int64)))
    return steps + (x > 1e300)


def beside_own_loops(x: Any) -> Any:
    """Loops of one device in an endless loop around sums, whose condition depends on them."""

    def own(x: Any) -> Any:
        return tracegraph.while_loop(lambda y: y < 1e3, lambda y: y + 1.0, x)

    def step(state: Any) -> Any:
        total, steps = state
        return tracegraph.psum(own(total * 0.0 + x[0]), "x"), steps + 1

    first = own(x[0] * 0.0 + 1.0), np.zeros_like(x, np.int64)
    return tracegraph.while_loop(lambda s: tracegraph.pmin(s[0], "x") > 0, step, first)[1]


def of_loops(x: Any) -> Any:
    """Loops around sums in an endless loop around sums."""

    def step(state: Any) -> Any:
        x, _, steps = state
        x = tracegraph.while_loop(
            lambda y: tracegraph.pmax(np.max(y), "x") > 1e-3, lambda y: 0.5 * y, x + 1.0
        )
        return x, tracegraph.psum(np.sum(x), "x"), steps + 1

    state = tracegraph.while_loop(lambda s: s[1] > 0, step, (x, 1.0, np.zeros_like(x, np.int64)))
    return state[2]


ENDLESS = by_sums, by_halos, beside_own_loops, of_loops


def raw(steps: Any) -> list[int]:
    """What a stopped program has written to the first element of each block."""
    found = np.zeros(1, np.int64)
    all_found = []
    for block in steps.memory.blocks:
        block.timeline.driver.activate()
        block.timeline.driver.copy_to_host(found, block.pointer)
        all_found.append(int(found[0]))
    return all_found


def assert_stopped(steps: Any, name: str) -> None:
    """All devices ended behind the same step, and none has results."""
    found = raw(steps)
    print("stopped behind steps", *found, flush=True)
    assert len(found) == SIZE
    assert len(set(found)) == 1
    assert found[0] > 0
    for block in steps.memory.blocks:
        with pytest.raises(errors.StoppedError, match=name):
            block.to_host()


def assert_solves(device: str = "cuda") -> None:
    """A program gives what it should."""
    x, steps = sharded(solve, P("x"), (P("x"), P()), device)(B)
    matrix = 2.5 * np.eye(200) - np.eye(200, k=1) - np.eye(200, k=-1)
    np.testing.assert_allclose(matrix @ np.asarray(x), B, 0, 1e-8)
    assert int(steps) > 0


def time_limits() -> None:
    """All kinds of loops end within a time limit, at the same step, in one kernel or as a node."""
    for schedule in ("one_kernel", "conditional"):
        for fun in ENDLESS:
            with override(loops=schedule):
                compiled = sharded(fun, P("x"), P("x")).lower(np.ones(8)).compile()
            for _ in range(2):
                start = time.perf_counter()
                with tracegraph.time_limit(0.3):
                    steps = compiled(np.ones(8))
                    with pytest.raises(errors.TimeLimitError):
                        steps.synchronize()
                taken = time.perf_counter() - start
                print(fun.__name__, schedule, f"ended after {taken:.3f} s", flush=True)
                assert_stopped(steps, "TimeLimitError")
        assert_solves()


def step_limits() -> None:
    """A loop with too many steps ends by itself; the error names a device."""

    def fun(x: Any) -> Any:
        return tracegraph.while_loop(
            lambda s: tracegraph.psum(np.sum(s), "x") > 0, lambda s: s + 1.0, x, max_steps=50
        )

    with pytest.raises(errors.StepLimitError) as caught:
        sharded(fun, P("x"), P("x"))(np.ones(8)).synchronize()
    assert any(f"on device 0 of Mesh(x={SIZE}" in note for note in caught.value.__notes__)
    assert_solves()


def failing_checks() -> None:
    """A check that fails on one device alone."""

    def fun(x: Any, i: Any) -> Any:
        return tracegraph.fori_loop(0, 5, lambda _, y: tracegraph.psum(x[i[0]], "x") + y, x)

    mapped, inside = sharded(fun, (P("x"), P("x")), P("x")), np.arange(SIZE) % 2
    last = SIZE - 1
    with tracegraph.check_indices():
        found = mapped(np.ones(8), np.where(np.arange(SIZE) == last, 99, inside))
        with pytest.raises(IndexError) as caught:
            found.synchronize()
        assert any(f"on device {last} of Mesh(" in note for note in caught.value.__notes__)
        np.testing.assert_array_equal(mapped(np.ones(8), inside), np.full(8, 1.0 + 5 * SIZE))


def interrupts() -> None:
    """Ctrl-C in a wait ends all devices; later calls are right."""
    mapped = sharded(by_sums, P("x"), P("x"))
    for delay in (0.05, 0.3):
        steps = mapped(np.ones(8))
        threading.Timer(delay, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            steps.synchronize()
        assert_stopped(steps, "KeyboardInterrupt")
    assert_solves()


def abandons() -> None:
    """A launch that fails on one device, while the other waits for it."""
    matrix = np.random.default_rng(1).standard_normal((64, 64))
    for _ in range(2):
        mesh = Mesh(SIZE, "x", device="cuda")
        mapped = tracegraph.jit(shard(by_sums, mesh=mesh, in_specs=P("x"), out_specs=P("x")))
        compiled = mapped.lower(np.ones(8)).compile()

        def launch(*_: Any) -> Any:
            time.sleep(0.2)
            raise MemoryError

        compiled.executable._devices[1].launch = launch
        start = time.perf_counter()
        with pytest.raises(MemoryError) as caught:
            compiled(np.ones(8))
        print(f"abandoned after {time.perf_counter() - start:.3f} s", flush=True)
        assert any(f"1 of the {SIZE} devices" in note for note in caught.value.__notes__)
        waiting = [t.name for t in threading.enumerate() if "_aborted" in t.name]
        assert not waiting, "aborts have returned"
        assert_solves()
        for ordinal in range(SIZE):
            product = tracegraph.jit(lambda a: a @ a, device=f"cuda:{ordinal}")(matrix)
            np.testing.assert_allclose(np.asarray(product), matrix @ matrix, 1e-9, 1e-9)


def driven_by_the_host() -> None:
    """Where the host drives loops, programs give the same, and end by abandoning their devices."""
    for fun in (by_sums, of_loops):
        with features.override(conditional_nodes=False), override(loops="conditional"):
            assert_solves()
            compiled = sharded(fun, P("x"), P("x")).lower(np.ones(8)).compile()
            with tracegraph.time_limit(0.5), pytest.raises(errors.TimeLimitError):
                compiled(np.ones(8)).synchronize()
            assert compiled.executable.closed
            compiled = sharded(fun, P("x"), P("x")).lower(np.ones(8)).compile()
            threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
            with pytest.raises(KeyboardInterrupt):
                compiled(np.ones(8)).synchronize()
    assert_solves()


def leaves_a_loop_running() -> None:
    """The process ends by itself with a loop in flight."""
    sharded(by_sums, P("x"), P("x"))(np.ones(8))


ENDS: dict[str, Callable[[], None]] = {
    end.__name__: end
    for end in (
        *(time_limits, step_limits, failing_checks, interrupts, abandons),
        *(driven_by_the_host, leaves_a_loop_running),
    )
}

if __name__ == "__main__":
    faulthandler.dump_traceback_later(SECONDS, exit=True)
    for name in sys.argv[2:]:
        begun = time.perf_counter()
        ENDS[name]()
        print(f"done {name} in {time.perf_counter() - begun:.1f} s", flush=True)
