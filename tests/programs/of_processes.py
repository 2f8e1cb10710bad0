"""Programs of several processes, each of which has an equal share of a mesh.

`python -m tests.programs.of_processes DEVICE EACH NAME ...`, started by a launcher, runs some of
them, where each process has EACH devices.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import tracegraph
from tests.programs.sharded import solve
from tracegraph import Mesh, errors, shard
from tracegraph import PartitionSpec as P

SECONDS = 60
"""After this time a program has not ended by itself."""

EACH = int(sys.argv[2]) if __name__ == "__main__" else 1
"""Devices of each process."""

X = np.random.default_rng(0).integers(-9, 9, (16, 4)).astype(float)  # sums are exact


def whole_mesh(device: str) -> Mesh:
    """All devices along one axis."""
    return Mesh(EACH * tracegraph.process_count(), "x", device=device)


def values(device: str) -> None:
    """Results in all processes, and arrays that go in and come out."""
    index, each = tracegraph.process_index(), EACH
    mesh = whole_mesh(device)
    assert list(mesh.local_devices) == [each * index + i for i in range(each)]

    b = np.random.default_rng(1).standard_normal(40 * mesh.size)
    solved = tracegraph.jit(shard(solve, mesh=mesh, in_specs=P("x"), out_specs=(P("x"), P())))
    for _ in range(2):
        x, steps = solved(b)
        assert int(steps) > 10  # the same on all: it can be read
        rows = np.eye(len(b))
        matrix = 2.5 * rows - np.roll(rows, 1, 1) - np.roll(rows, -1, 1)
        matrix[0, -1] = matrix[-1, 0] = 0
        np.testing.assert_allclose(matrix @ tracegraph.all_gather_to_host(x), b, 1e-8, 1e-8)
    assert list(solved.profile(b).devices) == list(mesh.local_devices)
    assert not x.is_fully_addressable
    assert "in several processes" in str(x)
    with pytest.raises(errors.NotAddressableError, match=r"call tracegraph\.all_gather_to_host"):
        np.asarray(x)

    blocks = [np.full((2, 3), float(d)) for d in mesh.local_devices]
    made = tracegraph.make_array_from_local(blocks, mesh, P(None, "x"))
    assert made.shape == (2, 3 * mesh.size)
    assert [s.device for s in made.addressable_shards] == list(mesh.local_devices)
    whole = tracegraph.all_gather_to_host(made)
    np.testing.assert_array_equal(whole[1], np.repeat(np.arange(mesh.size), 3))
    put = tracegraph.device_put(X, mesh, P("x"))
    np.testing.assert_array_equal(tracegraph.all_gather_to_host(put), X)


def collectives(device: str) -> None:
    """Each collective, as lanes of vmap have it."""
    mesh = whole_mesh(device)
    functions = (
        lambda x: tracegraph.psum(x, "x"),
        lambda x: tracegraph.all_gather(x, "x", tiled=True),
        lambda x: tracegraph.psum_scatter(x, "x", tiled=True),
        lambda x: tracegraph.all_to_all(x, "x", 1, 0, tiled=True),
        lambda x: tracegraph.ppermute(x, "x", [(0, 1)]),
        lambda x: x + tracegraph.axis_index("x"),
        lambda x: tracegraph.halo(x, "x", boundary=2.0)[0],
    )

    def all_of_them(x: Any) -> Any:
        return tuple([f(x) for f in functions])

    lanes = X.reshape(mesh.size, -1, *X.shape[1:])
    wanted = tracegraph.vmap(all_of_them, axis_name="x")(lanes)
    found = shard(all_of_them, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(X)
    for one, other in zip(tracegraph.all_gather_to_host(found), wanted, strict=True):
        np.testing.assert_array_equal(one, other.reshape(one.shape))


def planes(device: str) -> None:
    """A mesh of two axes: groups are other processes along each of them. A forked process that ends
    meanwhile is none of those.
    """
    if device == "host":
        faulthandler.cancel_dump_traceback_later()  # its thread is not in a forked process
        forked = os.fork()
        if not forked:
            sys.exit()
        assert os.waitpid(forked, 0)[1] == 0
        faulthandler.dump_traceback_later(SECONDS, exit=True)
    mesh = Mesh((2, 2), ("x", "y"), device=device)

    def sums(x: Any) -> Any:
        return tracegraph.psum(x, "x"), tracegraph.psum(x, "y"), tracegraph.pmax(x, ("x", "y"))

    specs = P(None, "y"), P("x"), P()
    rows, columns, largest = shard(sums, mesh=mesh, in_specs=P("x", "y"), out_specs=specs)(X)
    np.testing.assert_array_equal(tracegraph.all_gather_to_host(rows), X[:8] + X[8:])
    np.testing.assert_array_equal(tracegraph.all_gather_to_host(columns), X[:, :2] + X[:, 2:])
    np.testing.assert_array_equal(
        largest, np.maximum(np.maximum(X[:8, :2], X[8:, :2]), np.maximum(X[:8, 2:], X[8:, 2:]))
    )


def problems(device: str) -> None:
    """Errors in place of waits for ever; the next call works each time."""
    index = tracegraph.process_index()
    mesh = Mesh(2, "x", device=device)
    total = tracegraph.jit(
        shard(lambda x: tracegraph.psum(x, "x"), mesh=mesh, in_specs=P("x"), out_specs=P())
    )

    def works() -> None:
        np.testing.assert_array_equal(total(np.arange(4.0)), [2, 4])

    works()
    with pytest.raises(errors.MeshMismatchError) as shapes:
        total(np.ones(6 + 2 * index))
    assert "process 0: input[0]: f64[3]" in str(shapes.value)
    assert "process 1: input[0]: f64[4]" in str(shapes.value)
    assert shapes.value.processes == (1,)
    works()
    of_process = np.arange(3.0) + index

    def weighted(x: Any) -> Any:
        return x @ of_process

    with pytest.raises(errors.MeshMismatchError, match="constants have other values"):
        shard(weighted, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(np.ones((4, 3)))
    works()
    with pytest.raises(errors.MeshDeviceError, match="3 devices, which 2 processes cannot share"):
        Mesh(3, "x", device=device)


def waits(device: str) -> None:
    """Meshes of the host alone: waits at different places, failures, and time limits."""
    index = tracegraph.process_index()
    mesh = Mesh(2, "x", device=device)
    specs: Any = {"mesh": mesh, "in_specs": P("x"), "out_specs": P()}
    total = tracegraph.jit(shard(lambda x: tracegraph.psum(x, "x"), **specs))
    largest = tracegraph.jit(shard(lambda x: tracegraph.pmax(x, "x"), **specs))
    x = np.arange(4.0)
    total(x), largest(x)
    with pytest.raises(errors.DeadlockError) as calls:
        (largest if index else total)(x)
    assert "process 0, device 0: waits in all-reduce sum" in str(calls.value)
    assert "process 1, device 1: waits in all-reduce max" in str(calls.value)
    with pytest.raises(errors.DeadlockError, match=r"process 1: waits in the build of 'other'"):
        (shard(other, **specs) if index else total)(x)
    np.testing.assert_array_equal(total(x), [2, 4])

    if index:
        time.sleep(0.5)
        with pytest.raises(errors.PeerFailedError):
            total(x)
    else:
        with pytest.raises(errors.TimeLimitError), tracegraph.time_limit(0.1):
            total(x)
    np.testing.assert_array_equal(total(x), [2, 4])

    def uneven(x: Any) -> Any:
        def step(y: Any) -> Any:
            return tracegraph.while_loop(lambda z: z[0] > 0, lambda z: z - 1, y, max_steps=9)

        return tracegraph.psum(step(x), "x")

    wanted = errors.StepLimitError if index else errors.PeerFailedError
    with pytest.raises(wanted):
        shard(uneven, **specs)(np.array([1.0, 1.0, 99.0, 99.0]))
    np.testing.assert_array_equal(total(x), [2, 4])


def stopped(device: str) -> None:
    """A time limit of the first process ends a loop in all of them; the next call works."""
    mesh = whole_mesh(device)
    none, ones = np.zeros(mesh.size), np.ones(mesh.size)
    for fun, schedule in ((forever, None), (forever, "conditional"), (each_forever, None)):
        mapped = shard(partial(fun, schedule), mesh=mesh, in_specs=P("x"), out_specs=P())
        endless = tracegraph.jit(mapped)
        assert int(endless(none)) == 0
        if tracegraph.process_index() == 0:
            with pytest.raises(errors.TimeLimitError), tracegraph.time_limit(0.3):
                np.asarray(endless(ones))
        else:
            with pytest.raises((errors.StoppedError, errors.PeerFailedError)):
                np.asarray(endless(ones))
        assert int(endless(none)) == 0


def forever(schedule: Any, x: Any) -> Any:
    """Ends at once if no element is positive, and else never; each step exchanges elements."""

    def step(state: Any) -> Any:
        _, x = state
        return tracegraph.pmax(x[0], "x"), 1 / (x + 1)

    first: Any = tracegraph.pmax(x[0], "x"), x
    return tracegraph.while_loop(lambda s: s[0] > 0, step, first, schedule=schedule)[0]


def each_forever(schedule: Any, x: Any) -> Any:
    """As `forever`, but steps exchange nothing."""
    start = tracegraph.pmax(x[0], "x")
    return tracegraph.while_loop(lambda s: s > 0, lambda s: 1 / (s + 1), start, schedule=schedule)


def other(x: Any) -> Any:
    """As any."""
    return tracegraph.pmin(x, "x")


def orders(device: str) -> None:
    """GPUs alone: each process calls another of two built programs, and waits in the next call."""
    mesh, index = Mesh(2, "x", device=device), tracegraph.process_index()

    def sums(steps: int) -> Any:
        def fun(x: Any) -> Any:
            return tracegraph.fori_loop(0, steps, lambda i, x: tracegraph.pmean(x, "x") + x, x)

        return tracegraph.jit(shard(fun, mesh=mesh, in_specs=P("x"), out_specs=P("x")))

    endless = tracegraph.jit(
        shard(partial(forever, None), mesh=mesh, in_specs=P("x"), out_specs=P())
    )
    ten, eleven, x = sums(10), sums(11), np.ones(2)
    ten(x), eleven(x).synchronize()
    assert int(endless(np.zeros(2))) == 0

    def run() -> None:
        (eleven if index else ten)(x).synchronize()
        np.asarray(endless(x))

    with pytest.raises(errors.MeshMismatchError, match=r"launch \d+ of process 0: 'fun'"):
        run()


def killed(device: str) -> None:
    """The second process is killed while the others wait for it in a loop."""
    mesh = whole_mesh(device)
    endless = tracegraph.jit(
        shard(partial(forever, None), mesh=mesh, in_specs=P("x"), out_specs=P())
    )
    assert int(endless(np.zeros(mesh.size))) == 0
    if tracegraph.process_index() == 1:
        signal.setitimer(signal.ITIMER_REAL, 0.5)
        signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGKILL))
        np.asarray(endless(np.ones(mesh.size)))
    with pytest.raises(errors.PeerLostError, match="process 1 is lost") as lost:
        np.asarray(endless(np.ones(mesh.size)))
    assert lost.value.process == 1
    with pytest.raises(errors.PeerLostError):
        np.asarray(endless(np.ones(mesh.size)))


def fails_in_build(device: str) -> None:
    """GPUs alone: the second process has no memory when NCCL connects all; the next call works."""
    from lowering.cuda.libraries.nccl import Communicators

    mesh, second = whole_mesh(device), tracegraph.process_index() == 1
    total = tracegraph.jit(
        shard(lambda x: tracegraph.psum(x, "x"), mesh=mesh, in_specs=P("x"), out_specs=P())
    )
    x, connect = np.ones(mesh.size << 20), Communicators.of  # that is too much for kernels

    def fail(*_: Any) -> Any:
        raise MemoryError("nothing left")

    if second:
        Communicators.of = fail  # type: ignore[method-assign]
    with pytest.raises(MemoryError if second else errors.PeerLostError):
        total(x)
    Communicators.of = connect  # type: ignore[method-assign]
    np.testing.assert_array_equal(total(x), np.full(1 << 20, float(mesh.size)))


def killed_in_build(device: str) -> None:
    """GPUs alone: the second process is killed when NCCL connects all."""
    from lowering.cuda.libraries import nccl

    mesh, library = whole_mesh(device), nccl._library()
    if tracegraph.process_index() == 1:
        library.comm_init_rank_scalable = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
    total = shard(lambda x: tracegraph.psum(x, "x"), mesh=mesh, in_specs=P("x"), out_specs=P())
    with pytest.raises(errors.PeerLostError, match="process 1 is lost"):
        total(np.ones(mesh.size << 20))


def left(device: str) -> None:
    """The second process ends while the first one waits for it."""
    mesh = Mesh(2, "x", device=device)
    total = shard(lambda x: tracegraph.psum(x, "x"), mesh=mesh, in_specs=P("x"), out_specs=P())
    total(np.ones(2))
    if tracegraph.process_index() == 0:
        with pytest.raises(errors.PeerLostError, match="process 1 has ended"):
            total(np.ones(2))
        tracegraph.distributed.shutdown()
        with pytest.raises(errors.ProcessGroupError, match="shutdown"):
            total(np.ones(2))


PROGRAMS: dict[str, Callable[[str], None]] = {
    program.__name__: program
    for program in (
        *(values, collectives, planes, problems, waits, stopped, fails_in_build, orders, left),
        *(killed, killed_in_build),
    )
}

OF_TWO = {"problems", "waits", "orders", "left"}
"""Those of two processes, with a device each."""

OF_FOUR_DEVICES = {"planes"}

ON_HOST_ALONE, ON_GPUS_ALONE = {"waits", "left"}, {"orders", "fails_in_build"}

KILLED = {"killed", "killed_in_build"}
"""Those that end a process."""


def programs_of(device: str, processes: int, each: int) -> list[str]:
    """The names of the programs to run in order, for `processes` of `each` devices."""
    left_out = KILLED | (ON_GPUS_ALONE if device == "host" else ON_HOST_ALONE)
    left_out |= set() if processes == 2 else OF_TWO
    left_out |= set() if processes * each == 4 else OF_FOUR_DEVICES
    return [name for name in PROGRAMS if name not in left_out]


if __name__ == "__main__":
    faulthandler.dump_traceback_later(SECONDS, exit=True)
    tracegraph.distributed.initialize()
    for name in sys.argv[3:]:
        print(name, file=sys.stderr, flush=True)
        PROGRAMS[name](sys.argv[1])
    print("done", tracegraph.process_index(), tracegraph.process_count(), flush=True)
