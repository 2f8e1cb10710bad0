"""Donated arguments on a device: updated in place, within loops too, and never under a reader."""

import numpy as np
import pytest

import tracegraph
from tests.helpers.compiled import on_device
from tests.helpers.threads import in_threads
from tracegraph.errors import DonatedArrayError, StoppedError, TimeLimitError

MIB = 1 << 20


pytestmark = pytest.mark.usefixtures("fresh")


def held():
    """Bytes of arrays, those included that were freed since the last reset."""
    stats = tracegraph.memory_stats("cuda")
    return stats["arrays"] + stats["cached"]


def donating(function, positions=0):
    return tracegraph.jit(function, donate_argnums=positions, device="cuda")


def step(x):
    return x * 0.5 + 1


def relax(x):
    """Towards 2, in a loop whose number of steps depends on data."""
    return tracegraph.while_loop(lambda c: abs(c - 2).max() > 1e-3, step, x)


def slow(x):
    """x + 20000, after a while: each step waits for the one before."""
    return tracegraph.fori_loop(0, 20_000, lambda i, y: y + 1, x, schedule="one_kernel")


@pytest.mark.parametrize("function", [step, relax])
def test_a_chain_of_steps_holds_one_state(function):
    f = donating(function)
    before = held()
    x = on_device(np.zeros(MIB))  # 8 MiB
    address = x.data.pointer
    for _ in range(100):
        x = f(x)
        assert x.data.pointer == address
    np.testing.assert_allclose(np.asarray(x), 2.0, atol=1e-3)
    assert held() == before + 8 * MIB
    assert f.lower(x).memory["scratch"] < MIB
    assert f.stats()["bytes_copied"] == 0


def test_a_carry_is_copied_neither_in_nor_out():
    plain, donated = tracegraph.jit(relax, device="cuda"), donating(relax)
    x = np.linspace(-3, 3, 100_000)
    wanted = plain(on_device(x))
    found = donated(on_device(x))
    assert np.asarray(found).tobytes() == np.asarray(wanted).tobytes()
    nodes = [len(f.lower(x).compile().slots.nodes) for f in (plain, donated)]
    assert nodes[1] == nodes[0] - 2


def test_a_part_of_a_large_state_is_updated_where_it_is():
    f = donating(lambda table, row, i: table.at[i].set(row))
    table = on_device(np.zeros((1 << 12, 1 << 10)))
    address = table.data.pointer
    for i in range(20):
        table = f(table, np.full(1 << 10, float(i)), i)
    assert table.data.pointer == address
    np.testing.assert_array_equal(np.asarray(table)[:20, 7], np.arange(20.0))
    assert not np.asarray(table)[20:].any()


def test_two_states_that_change_places_are_not_moved():
    f = donating(lambda a, b: (b, a), (0, 1))
    a, b = on_device(np.zeros(1000)), on_device(np.ones(1000))
    addresses = a.data.pointer, b.data.pointer
    b, a = f(a, b)
    assert (a.data.pointer, b.data.pointer) == addresses
    assert np.asarray(b).all()
    assert not np.asarray(a).any()


def test_readers_in_flight_keep_their_elements():
    """On the same stream by order, on others since a copy is made."""
    f, double = donating(step), tracegraph.jit(lambda x: slow(x) * 2, device="cuda")
    stream = tracegraph.Stream()
    for elsewhere in (False, True):
        x = on_device(np.full(4096, 8.0))
        if elsewhere:
            with tracegraph.stream(stream):
                read = double(x)
        else:
            read = double(x)
        x = f(x)
        np.testing.assert_array_equal(np.asarray(read), 2 * 20_008.0)
        np.testing.assert_array_equal(np.asarray(x), 5.0)
    assert f.stats()["bytes_copied"] == 8 * 4096


def test_a_state_that_wanders_between_streams():
    f = donating(lambda x: slow(x))
    streams = [None, tracegraph.Stream(), tracegraph.Stream()]
    x = on_device(np.zeros(4096))
    for call in range(9):
        chosen = streams[call % 3]
        if chosen is None:
            x = f(x)
        else:
            with tracegraph.stream(chosen):
                x = f(x)
    np.testing.assert_array_equal(np.asarray(x), 9 * 20_000.0)


def test_threads_with_a_state_each():
    f = donating(step)
    results = {}

    def work(number):
        x = on_device(np.full(1000, float(number)))
        with tracegraph.stream(tracegraph.Stream()):
            for _ in range(200):
                x = f(x)
            results[number] = np.asarray(x)

    in_threads(8, work)
    assert all(np.allclose(results[number], 2.0) for number in range(8))


def test_what_cupy_reads_is_left_alone():
    cupy = pytest.importorskip("cupy")
    f = donating(step)
    for take in (cupy.asarray, cupy.from_dlpack):
        x = on_device(np.zeros(MIB))
        taken = take(x)
        y = f(x)
        y = f(y)
        np.testing.assert_array_equal(cupy.asnumpy(taken), 0.0)
        np.testing.assert_array_equal(np.asarray(y), 1.5)
        z = on_device(np.ones(MIB))  # not in memory that is still read
        np.testing.assert_array_equal(cupy.asnumpy(taken), 0.0)
        del z


def test_arrays_of_cupy_are_never_written_to():
    cupy = pytest.importorskip("cupy")
    f = donating(step)
    for x in (cupy.zeros(1000), cupy.zeros((1000, 2))[:, 0]):
        np.testing.assert_array_equal(np.asarray(f(x)), 1.0)
        assert not cupy.asnumpy(x).any()


def test_a_stopped_loop_has_spent_its_argument():
    f = donating(lambda x: tracegraph.while_loop(lambda c: (c > -1).all(), lambda c: c + 1, x))
    x = on_device(np.zeros(1000))
    y = f(x)
    with pytest.raises(TimeLimitError), tracegraph.time_limit(0.2):
        y.synchronize()
    with pytest.raises(DonatedArrayError):
        np.asarray(x)
    with pytest.raises(StoppedError):
        np.asarray(y)
    np.testing.assert_array_equal(np.asarray(f(on_device(np.full(1000, -5.0)))), -5.0)
