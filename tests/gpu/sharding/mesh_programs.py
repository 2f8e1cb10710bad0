"""Programs on a mesh of GPUs beside the same on a mesh of the host.

`python -m tests.gpu.sharding.mesh_programs DEVICE SIZE NAME...` runs the programs with these names
on a mesh of SIZE devices, 2 or 4. It ends with a traceback of all threads if devices wait for one
another.
"""

from __future__ import annotations

import faulthandler
import sys
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

import tracegraph
from tests.programs.sharded import solve
from tracegraph import Mesh, PartitionSpec, shard, tree
from tracegraph.concurrency.each_in_a_thread import each_in_a_thread

P = PartitionSpec
SECONDS = 90
"""After this time a program has not ended by itself."""

PAIRS_OF_LAUNCHES = 5000
"""In `lockstep`."""

X = np.random.default_rng(0).integers(-9, 9, (16, 4)) / 4  # sums are exact


class Meshes:
    """The mesh of a test, and that of the host."""

    def __init__(self, device: str, size: int) -> None:
        self.size, self.device = size, device
        self.tested, self.host = Mesh(size, "x", device=device), Mesh(size, "x", device="host")
        self.ring = [(i, (i + 1) % size) for i in range(size)]

    def results(self, fun: Any, in_specs: Any, out_specs: Any, *args: Any) -> Sequence[Any]:
        """Pairs of what both meshes give. The second call updates what the first has built."""
        found = []
        for mesh in (self.tested, self.host):
            mapped = tracegraph.jit(shard(fun, mesh=mesh, in_specs=in_specs, out_specs=out_specs))
            first, second = (tree.leaves(tree.map(np.asarray, mapped(*args))) for _ in range(2))
            for one, other in zip(first, second, strict=True):
                np.testing.assert_array_equal(one, other)
            found.append(second)
        return list(zip(*found, strict=True))

    def assert_equal(self, fun: Any, in_specs: Any, out_specs: Any, *args: Any) -> None:
        """All elements are those of the host."""
        for found, wanted in self.results(fun, in_specs, out_specs, *args):
            assert found.dtype == wanted.dtype
            np.testing.assert_array_equal(found, wanted)

    def assert_close(self, fun: Any, in_specs: Any, out_specs: Any, *args: Any) -> None:
        """All elements are those of the host but for rounding: summands may have another order."""
        for found, wanted in self.results(fun, in_specs, out_specs, *args):
            tolerance = 1e-9 if wanted.itemsize > 4 else 1e-4
            np.testing.assert_allclose(found, wanted, tolerance, tolerance * np.abs(wanted).max())


def sums(meshes: Meshes) -> None:
    """psum of each family of dtypes."""
    for dtype in ("float64", "float32", "float16", "int64", "int32", "uint8", "complex128"):
        array = np.abs(4 * X).astype(dtype)
        meshes.assert_equal(lambda x: tracegraph.psum(x, "x"), P("x"), P(), array)


def extremes(meshes: Meshes) -> None:
    """pmax, pmin and pmean."""
    folds = tracegraph.pmax, tracegraph.pmin, tracegraph.pmean
    holes = np.where(X > 1, np.nan, X)
    for x in (X, holes, holes.astype(np.float32), holes.astype(np.float16)):
        meshes.assert_equal(lambda x: tuple([f(x, "x") for f in folds]), P("x"), P(), x)


def moves(meshes: Meshes) -> None:
    """all_gather, psum_scatter, all_to_all and ppermute, to all and to one."""
    meshes.assert_equal(lambda x: tracegraph.all_gather(x, "x", tiled=True), P("x"), P(), X)
    divided = (
        lambda x: tracegraph.psum_scatter(x, "x", tiled=True),
        lambda x: tracegraph.all_to_all(x, "x", 1, 0, tiled=True),
        lambda x: tracegraph.ppermute(x, "x", meshes.ring),
        lambda x: tracegraph.ppermute(x, "x", [(0, 1)]),
    )
    for fun in divided:
        meshes.assert_equal(fun, P("x"), P("x"), X)


def places(meshes: Meshes) -> None:
    """axis_index, and a halo."""
    meshes.assert_equal(lambda x: x + tracegraph.axis_index("x"), P("x"), P("x"), X)
    meshes.assert_equal(lambda x: tracegraph.halo(x, "x", width=2, boundary=3.0), P("x"), P("x"), X)


def conjugate_gradients(meshes: Meshes) -> None:
    """Small and large: x, and within one the steps, as on the host."""
    for size in (2000, 1 << 20):
        b = np.random.default_rng(1).standard_normal(size)
        (x, wanted), (steps, expected) = meshes.results(solve, P("x"), (P("x"), P()), b)
        np.testing.assert_allclose(x, wanted, 1e-8, 1e-10)
        assert abs(int(steps) - int(expected)) <= 1


def heat(meshes: Meshes) -> None:
    """Halos of rows in a counted loop: in one kernel, and beside points that do not need them."""

    def diffuse(u: Any, steps: int, schedule: Any) -> Any:
        def step(i: Any, u: Any) -> Any:
            above, below = tracegraph.halo(u, "x")
            rows = np.concatenate([above, u, below])
            columns = np.roll(u, 1, 1) + np.roll(u, -1, 1)
            return u + 0.2 * (rows[:-2] + rows[2:] + columns - 4 * u)

        return tracegraph.fori_loop(0, steps, step, u, schedule=schedule)

    for shape, steps in ((256, 256), 200), ((1024, 512), 40), ((512, 4096), 10):
        u = np.random.default_rng(2).standard_normal(shape)
        for schedule in (None, "conditional"):
            meshes.assert_close(partial(diffuse, steps=steps, schedule=schedule), P("x"), P("x"), u)


def training(meshes: Meshes) -> None:
    """Gradients by weights that all devices have."""

    def fit(w: Any, rows: Any, y: Any) -> Any:
        def loss(w: Any) -> Any:
            return tracegraph.pmean(np.mean((np.tanh(rows @ w) - y) ** 2), "x")

        return tracegraph.fori_loop(0, 100, lambda i, w: w - 0.1 * tracegraph.grad(loss)(w), w)

    rng = np.random.default_rng(3)
    w, rows, y = (rng.standard_normal(shape) for shape in (64, (4096, 64), 4096))
    meshes.assert_close(fit, (P(), P("x"), P("x")), P(), w, rows, y)


def branches(meshes: Meshes) -> None:
    """Collectives in a branch that all devices take."""

    def either(x: Any) -> Any:
        return tracegraph.cond(
            tracegraph.psum(x.sum(), "x") > 0,
            lambda: tracegraph.psum(x, "x"),
            lambda: -tracegraph.pmax(x, "x"),
        )

    for sign in (1, -1):
        meshes.assert_equal(either, P("x"), P(), sign * np.ones((4, 2)))


def transforms(meshes: Meshes) -> None:
    """Fourier transforms and transposes in a loop."""

    def spectral(x: Any) -> Any:
        def step(i: Any, z: Any) -> Any:
            modes = tracegraph.all_to_all(np.fft.fft(z, axis=1), "x", 1, 0, tiled=True)
            return np.fft.ifft(modes.T, axis=1)

        return tracegraph.fori_loop(0, 10, step, x + 0j)

    rng = np.random.default_rng(4)
    meshes.assert_close(spectral, P("x"), P("x"), rng.standard_normal((64, 64)))


def loops_in_one_kernel(meshes: Meshes) -> None:
    """All kinds of exchanges by stores, as words and as arrays, and the same by a library."""
    pairs = meshes.size // 2

    def exchange(schedule: Any) -> Any:
        def step(i: Any, x: Any) -> Any:
            gathered = tracegraph.all_gather(x, "x").sum(0)
            blocks = tracegraph.all_to_all(np.stack(pairs * [x, gathered]), "x", 0, 0).sum(0)
            own = tracegraph.psum_scatter(np.stack(pairs * [x, blocks]), "x")
            moved = tracegraph.ppermute(x, "x", meshes.ring)
            found = tracegraph.psum(x, "x") + blocks + own + moved + tracegraph.pmax(x, "x")
            return found / 4**meshes.size

        return lambda x: tracegraph.fori_loop(0, 25, step, x, schedule=schedule)

    for size in (6, 1000, 80_000 // meshes.size):  # the last one is all but the most
        x = np.random.default_rng(5).standard_normal((meshes.size, size))
        for schedule in ("one_kernel", "conditional"):
            meshes.assert_close(exchange(schedule), P("x"), P("x"), x)
            meshes.assert_close(exchange(schedule), P("x"), P("x"), x.astype(np.float32))


def lockstep(meshes: Meshes) -> None:
    """10,000 launches of two programs in turn, with odd and even steps, one in a kernel of its own
    and one by NCCL: what they move and count is exact.
    """

    def moved(x: Any) -> Any:
        def step(i: Any, x: Any) -> Any:
            return tracegraph.ppermute(x, "x", meshes.ring) + 1

        return tracegraph.fori_loop(0, 7, step, x, schedule="one_kernel")

    def spread(x: Any) -> Any:
        def step(i: Any, x: Any) -> Any:
            return x + (tracegraph.pmin(x, "x") - tracegraph.pmax(x, "x"))

        return tracegraph.fori_loop(0, 4, step, x, schedule="conditional")

    odd, even = (
        tracegraph.jit(shard(fun, mesh=meshes.tested, in_specs=P("x"), out_specs=P("x")))
        for fun in (moved, spread)
    )
    places = np.arange(float(meshes.size)).repeat(64)
    x, start = tracegraph.device_put(places, meshes.tested, P("x")), time.perf_counter()
    for _ in range(PAIRS_OF_LAUNCHES):
        x = even(odd(x))
    found, taken = np.asarray(x), time.perf_counter() - start
    print(f"{2 * PAIRS_OF_LAUNCHES} launches took {taken:.1f} s", flush=True)
    turns = 64 * (PAIRS_OF_LAUNCHES * 7 % meshes.size)
    wanted = np.roll(places, turns) + PAIRS_OF_LAUNCHES * (7 - 4 * (meshes.size - 1))
    np.testing.assert_array_equal(found, wanted)


def threads_at_once(meshes: Meshes) -> None:
    """Threads build and call functions on the same mesh, on another one of the same devices, and on
    one of some of them.
    """
    others = Mesh((meshes.size, 1), ("x", "y"), device=meshes.device)
    some = Mesh(meshes.size // 2 or 1, "x", device=meshes.device)
    of_threads = [meshes.tested, meshes.tested, others, some]
    begin = threading.Barrier(len(of_threads))

    def run(number: int, mesh: Mesh) -> None:
        def fun(x: Any) -> Any:
            def step(i: Any, x: Any) -> Any:
                return x + tracegraph.pmax(x, "x") - tracegraph.pmin(x, "x") + number

            return tracegraph.fori_loop(0, 3 + number, step, x)

        mapped = tracegraph.jit(shard(fun, mesh=mesh, in_specs=P("x"), out_specs=P("x")))
        extent = mesh.shape["x"]
        x = tracegraph.device_put(np.arange(float(extent)), mesh, P("x"))
        begin.wait()
        for _ in range(200):
            x = mapped(x)
        wanted = np.arange(extent) + 200 * (3 + number) * (extent - 1 + number)
        np.testing.assert_array_equal(np.asarray(x), wanted)

    each_in_a_thread([partial(run, *each) for each in enumerate(of_threads)])


def many_launches(meshes: Meshes) -> None:
    """Launches in a row, of results of launches, and with arguments at new addresses."""

    def steps(x: Any) -> Any:
        return tracegraph.fori_loop(0, 10, lambda i, y: 0.5 * tracegraph.pmean(y, "x") + x, x)

    mapped = tracegraph.jit(shard(steps, mesh=meshes.tested, in_specs=P("x"), out_specs=P("x")))
    x = tracegraph.device_put(np.ones(1024), meshes.tested, P("x"))
    factor = 2 - 0.5**10  # of ones
    for _ in range(200):
        y = mapped(x)
    np.testing.assert_allclose(np.asarray(y), np.full(1024, factor), 1e-12)
    z = x
    for _ in range(50):
        z = mapped(z)
    np.testing.assert_allclose(np.asarray(z), np.full(1024, factor**50), 1e-9)
    for number in range(20):
        moved = tracegraph.device_put(np.full(1024, float(number)), meshes.tested, P("x"))
        np.testing.assert_allclose(np.asarray(mapped(moved)), np.full(1024, number * factor), 1e-12)


def profiles(meshes: Meshes) -> None:
    """Clocks of each device, in loops of both forms."""
    for schedule in ("conditional", "one_kernel"):

        def steps(x: Any, schedule: Any = schedule) -> Any:
            return tracegraph.fori_loop(
                0, 20, lambda _, x: x / 2 + tracegraph.pmean(x, "x"), x, schedule=schedule
            )

        mapped = shard(steps, mesh=meshes.tested, in_specs=P("x"), out_specs=P("x"))
        profile = tracegraph.jit(mapped).profile(np.ones(4096))
        assert list(profile.devices) == list(range(meshes.size))
        for own in profile.devices.values():
            assert own.seconds > 0
            if schedule == "conditional":
                runs = [node.runs for node in own.nodes if "all-reduce" in node.title]
                assert runs == [20.0] * len(runs) != []
        print(profile, flush=True)


def donations(meshes: Meshes) -> None:
    """Each device writes over its block of a donated argument."""
    mapped = shard(
        lambda x: x + tracegraph.psum(x, "x"), mesh=meshes.tested, in_specs=P("x"), out_specs=P("x")
    )
    jitted = tracegraph.jit(mapped, donate_argnums=0)
    x = jitted(tracegraph.device_put(np.ones(1024), meshes.tested, P("x")))
    before = [block.pointer for block in x.memory.blocks]
    x = jitted(x)
    assert [block.pointer for block in x.memory.blocks] == before
    np.testing.assert_array_equal(np.asarray(x), np.full(1024, (1.0 + meshes.size) ** 2))


PROGRAMS: dict[str, Callable[[Meshes], None]] = {
    program.__name__: program
    for program in (
        *(sums, extremes, moves, places, conjugate_gradients, heat, training, branches),
        *(
            transforms,
            loops_in_one_kernel,
            many_launches,
            lockstep,
            threads_at_once,
            profiles,
            donations,
        ),
    )
}

if __name__ == "__main__":
    faulthandler.dump_traceback_later(SECONDS, exit=True)
    device, size, *names = sys.argv[1:]
    for name in names:
        begun = time.perf_counter()
        PROGRAMS[name](Meshes(device, int(size)))
        print(f"done {name} in {time.perf_counter() - begun:.1f} s", flush=True)
