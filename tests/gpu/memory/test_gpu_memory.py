"""Memory on a device: one arena, donation, eviction, running out, and starting over."""

import gc
import time

import numpy as np
import pytest

import tracegraph
from tracegraph import memory
from tracegraph.errors import OutOfMemoryError

MIB = 1 << 20


pytestmark = pytest.mark.usefixtures("fresh")


def stats():
    return tracegraph.memory_stats("cuda")


def comes_to_hold(purpose, most):
    """Whether no more is held soon: what a graph owned is freed some time after the graph."""
    for _ in range(200):
        tracegraph.asarray(np.zeros(1), device="cuda").synchronize()
        gc.collect()
        if stats()[purpose] <= most:
            return True
        time.sleep(0.01)
    return False


def scan_sum(x):
    """Scratch of the size of x: a running sum, read in reverse."""
    return tracegraph.numpy.cumsum(x)[::-1] * 2 + x


def holding(nbytes):
    """A function that holds a constant of a size in bytes."""
    data = np.ones(nbytes // 8)
    return tracegraph.jit(lambda x: (data * x[0]).sum() + x, device="cuda")


def test_programs_that_share_an_arena_keep_their_own_results():
    f = tracegraph.jit(scan_sum, device="cuda")
    g = tracegraph.jit(lambda x: scan_sum(x) - 1, device="cuda")
    h = tracegraph.jit(lambda a: (a @ a) @ a, device="cuda")
    x = np.arange(200_000.0)
    a = np.eye(300) * 2
    f(x), g(x), h(a)
    results = [(f(x + i), g(x - i), h(a)) for i in range(20)]
    for i, (one, other, product) in enumerate(results):
        np.testing.assert_allclose(np.asarray(one), np.cumsum(x + i)[::-1] * 2 + x + i)
        np.testing.assert_allclose(np.asarray(other), np.cumsum(x - i)[::-1] * 2 + x - i - 1)
        np.testing.assert_array_equal(np.asarray(product), np.eye(300) * 8)


def test_two_executables_take_no_more_scratch_than_one():
    x = np.arange(1_000_000.0)
    f = tracegraph.jit(scan_sum, device="cuda")
    g = tracegraph.jit(lambda x: scan_sum(x) - 1, device="cuda")
    f(x)
    one = stats()["arenas"]
    assert one > 0
    g(x)
    assert stats()["arenas"] == one


def test_sums_that_blocks_share_are_right_while_others_use_the_arena():
    x = np.arange(1_000_000.0)
    total = tracegraph.jit(lambda x: x.sum(), device="cuda")
    f = tracegraph.jit(scan_sum, device="cuda")
    for _ in range(5):
        f(x)
        np.testing.assert_allclose(float(total(x)), x.sum())


def test_donated_memory_is_used_again():
    f = tracegraph.jit(lambda x: x[::-1] + 1, donate_argnums=0, device="cuda")
    x = tracegraph.asarray(np.zeros(MIB), device="cuda")
    addresses = set()
    for _ in range(10):
        x = f(x)
        addresses.add(x.data.pointer)
    assert len(addresses) <= 2
    assert (np.asarray(x) == 10).all()


def test_a_budget_evicts_and_calls_build_again():
    memory.set_budget(40 * MIB)
    functions = [holding(16 * MIB) for _ in range(4)]
    x = np.ones(10)
    for _ in range(2):
        for f in functions:
            assert np.asarray(f(x))[0] == 2 * MIB + 1
    assert comes_to_hold("constants", 40 * MIB)
    assert all(f.stats()["evictions"] > 0 for f in functions)
    assert all(f.stats()["traces"] == 1 for f in functions)


def test_running_out_evicts_what_is_idle_and_then_says_who_holds_what():
    idle = holding(256 * MIB)
    x = np.ones(10)
    idle(x)
    free = stats()["free"]
    hoard = []
    with pytest.raises(OutOfMemoryError, match="cuda:0 has not enough memory") as caught:
        fill(hoard, free // 8)
    assert idle.stats()["evictions"] == 1
    assert "arrays" in str(caught.value)
    del caught
    hoard.clear()
    gc.collect()
    assert np.asarray(idle(x))[0] == 32 * MIB + 1


def fill(hoard, nbytes):
    """Take arrays of one size until there is no more memory."""
    while True:
        hoard.append(array_of(nbytes))


def array_of(nbytes):
    """An Array on the device that nothing was written to."""
    from lowering.cuda.open_devices import open_device

    type_ = tracegraph.ArrayType("uint8", (nbytes,))
    return tracegraph.Array(open_device(0).pool.buffer(type_))


def test_freed_memory_goes_back_to_the_device():
    before = stats()["free"]
    large = array_of(1024 * MIB)
    assert stats()["free"] <= before - 960 * MIB
    del large
    assert stats()["cached"] >= 1024 * MIB
    tracegraph.reset()
    assert stats()["cached"] == 0
    assert stats()["free"] >= before - 64 * MIB


def test_functions_work_after_reset():
    f = tracegraph.jit(scan_sum, device="cuda")
    x = np.arange(1000.0)
    before = np.asarray(f(x))
    kept = f(x)
    tracegraph.reset()
    assert stats()["graphs"] == 0
    np.testing.assert_array_equal(np.asarray(kept), before)
    np.testing.assert_array_equal(np.asarray(f(x)), before)
    assert f.stats()["builds"] == 2
