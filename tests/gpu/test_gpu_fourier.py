"""`numpy.fft` as cuFFT calls in graphs: lengths, layouts, bodies, lanes, streams, lifetimes."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import fourier_cases
import numpy as np
import pytest
from cuda import core as cuda_core

import tracegraph
from lowering.cuda.device import open_device
from lowering.cuda.graph.cufft import Cufft, CufftPlan
from lowering.plan.nodes import LibraryNode, walk
from tracegraph import tree

ARGUMENTS = fourier_cases.ARGUMENTS
DTYPES = ["float32", "float64"]
LENGTHS = [1, 2, 3, 7, 64, 97, 1000, 1 << 20]


def on_gpu(function: Any, *arguments: Any) -> Any:
    return tree.map(np.asarray, tracegraph.jit(function, device="cuda")(*arguments))


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


def test_plans_outlive_the_function_as_long_as_a_graph_runs(fresh: Any) -> None:
    device = cuda_core.Device(0)
    device.set_current()
    stream = device.create_stream()
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
