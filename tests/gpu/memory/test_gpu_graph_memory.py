"""Scratch that each launch allocates: right results, nothing held by idle functions, and room."""

import numpy as np
import pytest

import tracegraph
from tests.helpers.compiled import on_device
from tracegraph import fori_loop, memory
from tracegraph.errors import OutOfMemoryError

MIB, GIB = 1 << 20, 1 << 30
MATRIX = np.random.default_rng(5).integers(0, 3, (128, 128)).astype(float)


pytestmark = pytest.mark.usefixtures("fresh")


def stats():
    return tracegraph.memory_stats("cuda")


def heap():
    from lowering.cuda.open_devices import open_device

    return open_device(0).heap


def per_launch(function, **options):
    return tracegraph.jit(function, device="cuda", scratch="per_launch", **options)


def scan_sum(x):
    """Scratch of the size of x: a running sum, read in reverse."""
    return tracegraph.numpy.cumsum(x)[::-1] * 2 + x


def mixed(x, a, steps):
    """Running sums, products and a loop of both, in scratch."""
    a = fori_loop(0, steps, lambda i, a: (a @ MATRIX) % 5 + i, a, schedule="conditional")
    return scan_sum(x) + a.sum(), a @ a


def large(nbytes):
    """A function whose launches need as much scratch, and no other memory to speak of."""

    def f(x):
        grid = tracegraph.numpy.cumsum(tracegraph.numpy.zeros(nbytes // 8) + x)
        return grid[::-1][:3] + grid[0]

    return per_launch(f)


def results_of(nbytes, x):
    count = nbytes // 8
    return np.array([count, count - 1, count - 2]) * x + x


def test_results_are_those_of_kept_scratch_for_any_arrays():
    kept = tracegraph.jit(mixed, device="cuda")
    idle = per_launch(mixed)
    for seed in range(20):
        random = np.random.default_rng(seed)
        x = on_device(random.integers(0, 9, 50_000).astype(float))
        a = on_device(random.integers(0, 5, (128, 128)).astype(float))
        for ours, theirs in zip(idle(x, a, seed), kept(x, a, seed), strict=True):
            np.testing.assert_array_equal(np.asarray(ours), np.asarray(theirs))
    assert idle.stats()["builds"] == 1
    assert idle.stats()["bytes_held"] < kept.stats()["bytes_held"]
    explained = idle.lower(x, a, 3).compile().explain()
    assert "\nscratch: allocated and freed by each launch" in explained


def test_idle_functions_hold_nothing():
    f = large(GIB)
    np.testing.assert_array_equal(np.asarray(f(2.0)), results_of(GIB, 2.0))
    assert stats()["arenas"] == 0
    assert stats()["graph_memory"] >= GIB
    free = stats()["free"]
    memory.trim()
    assert stats()["graph_memory"] == 0
    assert stats()["free"] >= free + GIB
    np.testing.assert_array_equal(np.asarray(f(3.0)), results_of(GIB, 3.0))
    assert f.stats()["builds"] == 1


def test_functions_of_one_stream_use_the_same_memory_in_turn():
    sizes = [3 * GIB, 2 * GIB, GIB // 2]
    functions = [large(nbytes) for nbytes in sizes]
    for turn in range(5):
        found = [f(float(turn)) for f in functions]
        for nbytes, result in zip(sizes, found, strict=True):
            np.testing.assert_array_equal(np.asarray(result), results_of(nbytes, turn))
        assert stats()["graph_memory"] < max(sizes) + 64 * MIB


def test_launches_on_several_streams_do_not_share_theirs():
    f = per_launch(mixed)
    random = np.random.default_rng(1)
    x = on_device(random.integers(0, 9, 400_000).astype(float))
    a = on_device(random.integers(0, 5, (128, 128)).astype(float))
    expected = [[np.asarray(r) for r in f(x, a, steps)] for steps in range(6)]
    streams = [tracegraph.Stream("cuda") for _ in range(3)]
    for _ in range(20):
        found = []
        for number, stream in enumerate(streams):
            with tracegraph.stream(stream):
                found.append((number, f(x, a, number)))
        found.append((5, f(x, a, 5)))
        for number, results in found:
            for ours, theirs in zip(results, expected[number], strict=True):
                np.testing.assert_array_equal(np.asarray(ours), theirs)


def test_a_launch_that_finds_no_memory_raises_and_the_next_one_works():
    f, small = large(40 * GIB), large(MIB)
    small(1.0)
    f(1.0)
    memory.trim()
    free = stats()["free"]
    hog = heap().allocate(free - 30 * GIB, "arrays")
    with pytest.raises(OutOfMemoryError, match="graph memory"):
        f(1.0)
    np.testing.assert_array_equal(np.asarray(small(4.0)), results_of(MIB, 4.0))
    del hog
    np.testing.assert_array_equal(np.asarray(f(2.0)), results_of(40 * GIB, 2.0))
    memory.trim()
    assert stats()["free"] >= free - 64 * MIB


def test_more_than_the_device_has_is_refused_and_all_stays_usable():
    small = large(MIB)
    small(1.0)
    free = stats()["free"]
    for nbytes in (stats()["total"] + GIB, 64 << 40):
        with pytest.raises(OutOfMemoryError):
            large(nbytes)(1.0)
    np.testing.assert_array_equal(np.asarray(small(4.0)), results_of(MIB, 4.0))
    memory.trim()
    assert stats()["free"] >= free - 64 * MIB


def test_an_exported_graph_allocates_its_scratch_as_well():
    from cuda.core import Device

    x = on_device(np.arange(100_000.0))
    exported = per_launch(scan_sum).lower(x).compile().export_graph(x)
    assert stats()["arenas"] == 0
    executable = exported.definition.instantiate()
    with pytest.raises(Exception, match="NOT_SUPPORTED"):
        exported.definition.instantiate()
    stream = Device(0).create_stream()
    for _ in range(3):
        executable.launch(stream)
        stream.sync()
        np.testing.assert_array_equal(
            np.asarray(exported.results), np.arange(100_000.0).cumsum()[::-1] * 2 + np.asarray(x)
        )


def test_donated_arguments_stay_valid_when_there_is_no_memory_for_the_launch():
    f = per_launch(lambda x: scan_sum(x) + x[::-1], donate_argnums=0)
    shape = 4 * GIB // 8
    x = on_device(np.ones(8))
    np.testing.assert_array_equal(np.asarray(f(x)), scan_sum(np.ones(8)) + 1)
    x = tracegraph.jit(lambda: tracegraph.numpy.ones(shape), device="cuda")()
    compiled = f.lower(x).compile()
    memory.trim()
    hog = heap().allocate(stats()["free"] - 5 * GIB, "arrays")
    with pytest.raises(OutOfMemoryError):
        compiled(x)
    del hog
    assert float(compiled(x)[-1]) == 4.0
