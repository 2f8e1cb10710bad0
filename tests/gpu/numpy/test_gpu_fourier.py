"""`numpy.fft` as cuFFT calls in graphs: lengths, layouts, bodies, lanes, streams, lifetimes."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

import tracegraph
from lowering.cuda.libraries.cufft import Cufft, CufftPlan
from lowering.cuda.libraries.recapture import KEPT
from lowering.cuda.open_devices import open_device
from lowering.plan.nodes import LibraryNode, walk
from lowering.plan.target.features import override as features
from lowering.plan.target.overrides import override
from tests.cases import fourier as fourier_cases
from tests.fakes.foreign_arrays import Foreign
from tests.helpers.compiled import all_on_device, on_gpu
from tests.helpers.parameters import in_turn
from tests.helpers.threads import in_threads
from tracegraph import tree

ARGUMENTS = fourier_cases.ARGUMENTS
DTYPES = ["float32", "float64"]
LENGTHS = [1, 2, 3, 7, 64, 97, 1000, 1 << 20]


def assert_close(found: Any, wanted: Any, units: float = 16) -> None:
    """Within units in the last place of the largest element."""
    found, wanted = np.asarray(found), np.asarray(wanted)
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    if wanted.size:
        unit = np.finfo(wanted.dtype).eps * np.abs(wanted).max()
        assert np.abs(found - wanted).max() <= units * unit


def points(*shape: int, dtype: str = "float64", parts: int = 1) -> Any:
    rng = np.random.default_rng(sum(shape))
    x = rng.standard_normal((parts, *shape)).astype(dtype)
    return x[0] if parts == 1 else x[0] + x.dtype.type(1) * 1j * x[1]


@pytest.mark.parametrize("expression", fourier_cases.TABLES)
def test_expressions_equal_numpys(expression: str) -> None:
    names = {k: v for k, v in ARGUMENTS.items() if k != "h"}

    def function(values: Any) -> Any:
        return eval(expression, {"xp": np, "np": np, "h": values["f"], **values})

    with np.errstate(all="ignore"):
        expected = tree.leaves(function(names))
    for found, wanted in zip(tree.leaves(on_gpu(function, names)), expected, strict=True):
        assert_close(found, wanted) if np.asarray(wanted).dtype.kind in "fc" else (
            np.testing.assert_array_equal(found, wanted)
        )


def test_half_precision_is_that_of_numpy() -> None:
    h = ARGUMENTS["h"]
    for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
        function = getattr(np.fft, name)
        assert_close(on_gpu(function, h), function(h))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", LENGTHS)
def test_all_transforms_of_a_length(n: int, dtype: str) -> None:
    x, z = points(n, dtype=dtype), points(n, dtype=dtype, parts=2)

    def function(x: Any, z: Any) -> Any:
        return (
            np.fft.fft(z),
            np.fft.ifft(z),
            np.fft.rfft(x),
            np.fft.irfft(z, n),
            np.fft.hfft(z, n),
            np.fft.ihfft(x),
            np.fft.ifft(np.fft.fft(z, norm="ortho"), norm="ortho"),
        )

    found = on_gpu(function, x, z)
    for got, wanted in zip(found, function(x, z), strict=True):
        assert_close(got, wanted, 64)
    assert_close(found[-1], z, 64)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(8, 8), (97, 30), (1, 64), (64, 1), (1024, 512)])
def test_two_dimensions_and_batches(shape: tuple[int, int], dtype: str) -> None:
    x = points(3, *shape, dtype=dtype)
    z = points(3, *shape, dtype=dtype, parts=2)

    def function(x: Any, z: Any) -> Any:
        return (
            np.fft.fft2(z),
            np.fft.rfft2(x),
            np.fft.irfft2(z, shape),
            np.fft.fft(z, axis=0),
            np.fft.fft(z, axis=1),
            np.fft.rfft(x, axis=1),
            np.fft.fftn(z, axes=(0, 2)),
            np.fft.irfft(z, axis=0),
        )

    for got, wanted in zip(on_gpu(function, x, z), function(x, z), strict=True):
        assert_close(got, wanted, 64)


def test_four_and_five_dimensions() -> None:
    z = points(4, 3, 5, 2, 6, parts=2)

    def function(z: Any) -> Any:
        return np.fft.fftn(z), np.fft.irfftn(z), np.fft.rfftn(z.real, axes=(3, 0, 1, 4))

    for got, wanted in zip(on_gpu(function, z), function(z), strict=True):
        assert_close(got, wanted, 64)


def test_imaginary_parts_that_numpy_leaves_out_change_nothing() -> None:
    z = points(6, 9, parts=2)
    function = lambda z: (np.fft.irfft(z), np.fft.irfft(z, 17), np.fft.irfftn(z), z)  # noqa: E731
    for got, wanted in zip(on_gpu(function, z), function(z), strict=True):
        assert_close(got, wanted)


def diffused(x: Any, steps: Any) -> Any:
    """Steps of a spectral diffusion, until its largest element is small or the steps are over."""
    decay = np.exp(-(np.fft.rfftfreq(x.shape[-1]) ** 2) * 40)

    def step(state: Any) -> Any:
        k, x = state
        return k + 1, np.fft.irfft(np.fft.rfft(x) * decay, x.shape[-1])

    return tracegraph.while_loop(
        lambda s: (s[0] < steps) & (np.abs(s[1]).max() > 0.1), step, (0, x)
    )


@pytest.mark.parametrize("n", [64, 97, 1000])
def test_they_run_in_loops(n: int) -> None:
    x = points(4, n)
    compiled = tracegraph.jit(diffused, device="cuda").lower(x, 20).compile()
    bodies = [body for node in walk(compiled.plan.graph) for body in node.bodies]
    assert any(isinstance(node, LibraryNode) for body in bodies for node in walk(body))
    for steps in (0, 1, 20):
        found, expected = compiled(x, steps), diffused(x, steps)
        assert int(found[0]) == expected[0]
        assert_close(np.asarray(found[1]), expected[1], 256)


def test_they_run_in_branches_and_scans() -> None:
    z = points(5, 32, parts=2)

    def function(z: Any, k: Any) -> Any:
        chosen = tracegraph.switch(
            k, [np.fft.fft, np.fft.ifft, lambda z: np.fft.fft2(z)], z, schedule="conditional"
        )
        total, rows = tracegraph.scan(
            lambda c, row: (c + np.fft.fft(row), np.fft.ifft(row)), z[0], z
        )
        return chosen, total, rows

    jitted = tracegraph.jit(function, device="cuda")
    for k in (0, 1, 2):
        for got, wanted in zip(jitted(z, k), function(z, k), strict=True):
            assert_close(np.asarray(got), wanted, 64)


def test_lanes_and_derivatives() -> None:
    x = points(6, 10, 15)

    def energy(x: Any) -> Any:
        return np.sum(np.sin(np.fft.irfft2(np.abs(np.fft.rfft2(x)) ** 2 + 1, x.shape)))

    function = lambda x: (  # noqa: E731
        tracegraph.vmap(np.fft.fft2)(x),
        tracegraph.vmap(np.fft.rfft, in_axes=1, out_axes=2)(x),
        tracegraph.vmap(tracegraph.grad(energy))(x),
        tracegraph.jvp(energy, (x[0],), (x[1],)),
    )
    on_host = tree.map(np.asarray, tracegraph.jit(function, device="host")(x))
    for got, wanted in zip(tree.leaves(on_gpu(function, x)), tree.leaves(on_host), strict=True):
        assert_close(got, wanted, 1 << 12)


def spectrum(x: Any) -> Any:
    return np.fft.ifft(np.fft.fft(x) * np.fft.fftfreq(x.shape[-1]))


def test_arguments_at_new_addresses_and_layouts() -> None:
    jitted = tracegraph.jit(spectrum, device="cuda")
    for k in range(5):
        x = points(200 + 8) + k
        kept = tracegraph.asarray(x, device="cuda")
        assert_close(np.asarray(jitted(kept)), spectrum(x), 64)
        assert_close(np.asarray(jitted(x)), spectrum(x), 64)
    assert jitted.stats()["traces"] == 1


def test_two_streams_at_a_time() -> None:
    jitted = tracegraph.jit(
        lambda x: tracegraph.fori_loop(0, 50, lambda i, y: spectrum(y) + 1, x + 0j), device="cuda"
    )
    streams = [tracegraph.Stream() for _ in range(2)]
    xs = [points(1 << 14) + k for k in range(2)]
    given = [tracegraph.asarray(x, device="cuda") for x in xs]
    expected = [np.asarray(jitted(x)) for x in given]
    for _ in range(5):
        found = []
        for stream, x in zip(streams, given, strict=True):
            with tracegraph.stream(stream):
                found.append(jitted(x))
        for got, wanted in zip(found, expected, strict=True):
            np.testing.assert_array_equal(np.asarray(got), wanted)


def test_plans_outlive_the_function_as_long_as_a_graph_runs(fresh: Any, stream: Any) -> None:
    x = points(1009)
    jitted = tracegraph.jit(spectrum, device="cuda")
    given = tracegraph.asarray(x, device="cuda")
    exported = jitted.lower(x).compile().export_graph(given)
    executable = exported.definition.instantiate()
    alive = [weakref.ref(each) for each in gc.get_objects() if isinstance(each, CufftPlan)]
    assert len(alive) == 2
    del jitted
    gc.collect()
    other = tracegraph.jit(lambda x: np.fft.fft(x, 333), device="cuda")
    assert_close(np.asarray(other(x)), np.fft.fft(x, 333), 64)  # destroys what has ended
    assert all(plan() is not None for plan in alive)
    executable.launch(stream)
    stream.sync()
    assert_close(np.asarray(exported.results), spectrum(x), 64)


def test_plans_are_destroyed_behind_their_graphs(fresh: Any) -> None:
    library: Any = open_device(0).driver.library(Cufft)
    x = points(700)
    for n in (701, 702, 703):
        jitted = tracegraph.jit(lambda x, n=n: np.fft.fft(x, n), device="cuda")
        assert_close(np.asarray(jitted(x)), np.fft.fft(x, n), 64)
        del jitted
        gc.collect()
        tracegraph.reset()
    assert len(library._ended) <= 1, "each plan destroys those before it"


def test_scratch_of_each_launch(fresh: Any) -> None:
    x = points(3, 1009)
    jitted = tracegraph.jit(spectrum, device="cuda", scratch="per_launch")
    for k in range(3):
        assert_close(np.asarray(jitted(x + k)), spectrum(x + k), 64)


# -- where arguments and results are ---------------------------------------------------------------


@pytest.fixture
def in_place() -> Iterator[None]:
    """All transforms at the top have arguments where they are, however small."""
    with override(operands="in_place"):
        yield


def assert_moves(function: Any, *arrays: Any, units: float = 64, **options: Any) -> Any:
    """Calls on arrays that move, and come back, give what NumPy gives, without copies."""
    f = tracegraph.jit(function, device="cuda", **options)
    plan = f.lower(*arrays).compile().plan
    assert any(getattr(node, "call", None) and node.call.recaptured for node in plan.graph.nodes)
    assert (plan.copied, plan.fallbacks) == ((), ())
    kept: list[Any] = []
    for turn in range(4):
        given = [array * (turn + 1) for array in arrays]
        there = all_on_device(*given)
        for _ in range(2):
            results = tree.leaves(f(*there))
            kept += [*there, *results]
            for found, wanted in zip(results, tree.leaves(function(*given)), strict=True):
                assert_close(np.asarray(found), wanted, units)
    assert (f.stats()["builds"], f.stats()["bytes_copied"]) == (1, 0)
    return f


@pytest.mark.parametrize(
    ("n", "dtype"), in_turn([*LENGTHS, 6, 4096, 10007, 3 * (1 << 16), 65537], DTYPES)
)
def test_transforms_of_any_length_move(in_place: None, n: int, dtype: str) -> None:
    z = points(n, dtype=dtype, parts=2)
    assert_moves(np.fft.fft, z)
    assert_moves(np.fft.ifft, z)
    assert_moves(np.fft.rfft, points(n, dtype=dtype))
    assert_moves(lambda z: np.fft.irfft(z, n), points(n // 2 + 1, dtype=dtype, parts=2))


@pytest.mark.parametrize(
    ("shape", "dtype"),
    in_turn([(8, 8), (97, 30), (64, 1), (1024, 512), (2048, 2048)], DTYPES),
)
def test_transforms_over_several_axes_move(
    in_place: None, shape: tuple[int, int], dtype: str
) -> None:
    z, x = points(*shape, dtype=dtype, parts=2), points(*shape, dtype=dtype)
    assert_moves(np.fft.fft2, z)
    assert_moves(np.fft.rfft2, x)
    assert_moves(lambda z: np.fft.irfft2(z, shape), np.fft.rfft2(x).astype(z.dtype))
    assert_moves(lambda z: np.fft.fft(z, axis=0), z)
    assert_moves(lambda z: np.fft.fft(z.T), z)
    assert_moves(lambda z: np.fft.fft(z[1:, 1:], axis=0), z) if min(shape) > 1 else None


def test_three_axes_and_batches_move(in_place: None) -> None:
    z = points(16, 12, 20, parts=2)
    assert_moves(np.fft.fftn, z)
    assert_moves(lambda z: np.fft.fftn(z, axes=(0, 2)), z)
    assert_moves(np.fft.rfftn, points(16, 12, 20))
    assert_moves(tracegraph.vmap(np.fft.fft2), z)


def test_large_transforms_are_in_place_by_themselves() -> None:
    z = points(1024, 1024, dtype="float32", parts=2)
    assert_moves(np.fft.fft2, z)
    small = tracegraph.jit(np.fft.fft2, device="cuda").lower(z[:16, :16].copy())
    assert small.plan.copied


def test_several_transforms_of_one_program(in_place: None) -> None:
    x, y = points(256, 256, parts=2), points(64, 1024, parts=2)
    assert_moves(
        lambda x, y: (np.fft.fft2(x), np.fft.fft(y), np.fft.fft(x, axis=0), np.sin(x), x * 2), x, y
    )


def test_what_is_between_transforms_stays_in_scratch(in_place: None) -> None:
    x, h = points(256, 256, parts=2), points(256, 256, parts=2)
    f = assert_moves(lambda x, h: np.fft.fft2(np.fft.fft2(x) * h), x, h, units=256)
    plan = f.lower(x, h).plan
    assert [node.kind for node in plan.graph.nodes] == ["library", "kernel", "library"]
    assert_moves(lambda x: np.fft.fft(np.fft.fft(np.fft.fft(x))), x, units=256)
    assert_moves(spectrum, x, units=256)


def test_arguments_are_not_changed(in_place: None) -> None:
    z, x = points(128, 65, parts=2), points(128, 128)
    f = tracegraph.jit(
        lambda z, x: (np.fft.irfft2(z), np.fft.rfft2(x), np.fft.fft2(z)), device="cuda"
    )
    there = all_on_device(z, x)
    for _ in range(3):
        f(*there)
    np.testing.assert_array_equal(np.asarray(there[0]), z)
    np.testing.assert_array_equal(np.asarray(there[1]), x)


def test_more_addresses_than_are_kept(in_place: None) -> None:
    f = tracegraph.jit(np.fft.fft2, device="cuda")
    zs = [points(64, 64, parts=2) + k for k in range(KEPT + 4)]
    there = all_on_device(*zs)
    for _ in range(3):
        for z, given in zip(zs, there, strict=True):
            assert_close(np.asarray(f(given)), np.fft.fft2(z), 64)
    assert f.stats()["bytes_copied"] == 0


def test_a_chain_of_results(in_place: None) -> None:
    f = tracegraph.jit(lambda x: np.fft.fft(x, norm="ortho"), device="cuda")
    x = points(4096, parts=2)
    (y,) = all_on_device(x)
    for _ in range(40):
        y = f(y)
    assert_close(np.asarray(y), x, 1024)  # four transforms are the identity
    before = f.stats()["updates"]
    for _ in range(8):
        y = f(y)
    assert f.stats()["updates"] == before, "executables for two addresses take turns"


def test_donated_arguments(in_place: None) -> None:
    def step(x: Any) -> Any:
        return np.fft.fft2(np.fft.fft2(x, norm="ortho"), norm="ortho")

    x = points(256, 128, parts=2)
    f = tracegraph.jit(step, donate_argnums=0, device="cuda")
    plan = f.lower(x).plan
    assert plan.outputs == plan.inputs
    (y,) = all_on_device(x)
    for _ in range(10):
        y = f(y)
    assert_close(np.asarray(y), x, 1024)
    assert f.stats()["bytes_copied"] == 0
    one = tracegraph.jit(np.fft.fft2, donate_argnums=0, device="cuda")
    for k in range(4):
        (given,) = all_on_device(x + k)
        assert_close(np.asarray(one(given)), np.fft.fft2(x + k), 64)


def test_several_streams(in_place: None) -> None:
    f = tracegraph.jit(lambda x: np.fft.fft2(np.fft.fft2(x) + 1), device="cuda")
    streams: list[Any] = [None, tracegraph.Stream(), tracegraph.Stream()]
    xs = [points(512, 512, parts=2) + k for k in range(3)]
    there, found = all_on_device(*xs), []
    for turn in range(9):
        stream = streams[turn % 3]
        with nullcontext() if stream is None else tracegraph.stream(stream):
            found.append(f(there[(turn + turn // 3) % 3]))
    for turn, result in enumerate(found):
        x = xs[(turn + turn // 3) % 3]
        assert_close(np.asarray(result), np.fft.fft2(np.fft.fft2(x) + 1), 256)
    assert f.stats()["bytes_copied"] == 0


def test_threads_capture_one_after_the_other(in_place: None) -> None:
    f = tracegraph.jit(np.fft.fft2, device="cuda")
    x = points(128, 128, parts=2)
    f(x)

    def work(number: int) -> None:
        with tracegraph.stream(tracegraph.Stream()):
            kept = []
            for k in range(30):
                (there,) = all_on_device(x + number + k)
                kept += [there, f(there)]
                assert_close(np.asarray(kept[-1]), np.fft.fft2(x + number + k), 64)

    in_threads(4, work)


def test_exported_graphs_have_addresses_of_their_own(in_place: None, stream: Any) -> None:
    f = tracegraph.jit(lambda x: np.fft.fft2(np.fft.fft2(x)), device="cuda")
    x = points(128, 256, parts=2)
    expected = np.fft.fft2(np.fft.fft2(x))
    (there,) = all_on_device(x)
    assert_close(np.asarray(f(there)), expected, 256)
    exported = f.lower(x).compile().export_graph(there)
    executable = exported.definition.instantiate()
    others = all_on_device(x + 1, x + 2)
    for other in others:
        f(other)
    del f
    gc.collect()
    executable.launch(stream)
    stream.sync()
    assert_close(np.asarray(exported.results), expected, 256)


def test_a_call_becomes_a_part_of_a_capture(in_place: None) -> None:
    torch = pytest.importorskip("torch")
    f = tracegraph.jit(np.fft.rfft2, device="cuda")
    x = torch.arange(64 * 64, dtype=torch.float32, device="cuda").reshape(64, 64)
    f(x)
    graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    with torch.cuda.graph(graph, stream=stream), tracegraph.stream(stream.cuda_stream):
        result = f(x)
    for k in (1, 2):
        x.mul_(k)
        graph.replay()
        torch.cuda.synchronize()
        assert_close(np.asarray(result), np.fft.rfft2(x.cpu().numpy()), 64)


def test_calls_while_another_thread_captures(in_place: None) -> None:
    torch = pytest.importorskip("torch")
    f = tracegraph.jit(np.fft.fft2, device="cuda")
    z = points(64, 64, parts=2)
    theirs = torch.ones(1000, device="cuda")
    zs = [z + k for k in range(5)]
    there = all_on_device(*zs)
    filled = [f(each) for each in there]  # the pool has memory for results then
    del filled
    results: list[Any] = []
    graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    with torch.cuda.graph(graph, stream=stream):  # in global mode
        theirs.add_(1)
        worker = threading.Thread(target=lambda: results.extend(f(x) for x in reversed(there)))
        worker.start()
        worker.join()
        theirs.add_(1)
    graph.replay()
    torch.cuda.synchronize()
    assert float(theirs[0]) == 3
    for result, given in zip(results, reversed(zs), strict=True):
        assert_close(np.asarray(result), np.fft.fft2(given), 64)


@pytest.mark.parametrize("offset", [0, 2, 4, 8, 1, 3])
def test_arrays_of_others_that_are_less_aligned(in_place: None, offset: int) -> None:
    n = 1 << 16
    x = points(n + 8, dtype="float32")
    (there,) = all_on_device(x)
    pointer = there.__cuda_array_interface__["data"][0]
    f = tracegraph.jit(np.fft.rfft, device="cuda")
    found = f(Foreign(pointer + 4 * offset, None, "<f4", (n,)))
    assert_close(np.asarray(found), np.fft.rfft(x[offset : offset + n]), 64)
    assert bool(f.stats()["bytes_copied"]) is bool(offset % 4)


def test_without_updates_of_library_nodes_results_are_the_same(in_place: None) -> None:
    x = points(64, 96, parts=2)
    with features(library_updates=False):
        f = tracegraph.jit(lambda x: (np.fft.fft2(x), x + 1), device="cuda")
        compiled = f.lower(x).compile()
        assert compiled.plan.fallbacks
        for k in range(3):
            (there,) = all_on_device(x + k)
            found = f(there)
            assert_close(np.asarray(found[0]), np.fft.fft2(x + k), 64)
    assert f.stats()["bytes_copied"]


def test_loops_beside_a_transform_that_moves(in_place: None) -> None:
    def function(x: Any, n: Any) -> Any:
        return np.fft.fft(x), tracegraph.fori_loop(0, n, lambda i, y: np.fft.ifft(y) * 2, x)

    f = tracegraph.jit(function, device="cuda")
    x = points(8, 512, parts=2)
    for n in (0, 3, 5):
        (there,) = all_on_device(x + n)
        for found, wanted in zip(f(there, n), function(x + n, n), strict=True):
            assert_close(np.asarray(found), wanted, 256)


def test_scratch_of_each_launch_and_arguments_that_move(in_place: None, fresh: Any) -> None:
    x = points(256, 256, parts=2)
    assert_moves(lambda x: np.fft.fft2(np.fft.fft2(x)), x, units=256, scratch="per_launch")
