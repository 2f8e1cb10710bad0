"""What a graph points to outlives every Python reference, and goes with the graph."""

import gc
import weakref

import numpy as np
import pytest

import tracegraph
from tracegraph import cond, fori_loop

N = 50_000


def numpy_table():
    table = np.arange(float(N))

    def drop():
        table[:] = np.nan

    return table, drop


def own_table():
    table = tracegraph.asarray(np.arange(float(N)), device="cuda")
    return table, lambda: None


def cupy_table(adopt=tracegraph.asarray):
    cupy = pytest.importorskip("cupy")
    source = cupy.arange(N, dtype=cupy.float64)
    table = adopt(source)

    def drop():
        nonlocal source
        source[:] = cupy.nan
        del source
        cupy.get_default_memory_pool().free_all_blocks()

    return table, drop


def torch_table(adopt=tracegraph.asarray):
    torch = pytest.importorskip("torch")
    source = torch.arange(N, dtype=torch.float64, device="cuda")
    table = adopt(source)

    def drop():
        nonlocal source
        source[:] = float("nan")
        del source
        torch.cuda.empty_cache()

    return table, drop


def cupy_array():
    return cupy_table(lambda source: source)


def torch_tensor():
    return torch_table(lambda source: source)


def at_the_top(x, table):
    return x * 2 + table


def in_a_branch(x, table):
    return cond(x[0] >= 0, lambda x: x * 2 + table, lambda x: x, x, schedule="conditional")


def in_a_loop(x, table):
    return fori_loop(0, 1, lambda i, x: x * 2 + table, x, schedule="conditional")


def poison():
    """NaN over whatever was freed."""
    return [tracegraph.asarray(np.full(N + k, np.nan), device="cuda") for k in range(16)]


def compiled_with(make, use):
    """A compiled function alone: what its constant was read from is overwritten and freed."""
    table, drop = make()
    run = tracegraph.jit(lambda x: use(x, table), device="cuda")
    compiled = run.lower(tracegraph.ArrayType("float64", (N,))).compile()
    compiled(np.zeros(N)).synchronize()
    drop()
    return compiled


@pytest.mark.parametrize("use", [at_the_top, in_a_branch, in_a_loop])
@pytest.mark.parametrize(
    "make", [numpy_table, own_table, cupy_table, torch_table, cupy_array, torch_tensor]
)
def test_constants_outlive_all_references_to_them(make, use):
    compiled = compiled_with(make, use)
    gc.collect()
    held = poison()
    for k in range(3):
        got = np.asarray(compiled(np.full(N, float(k))))
        np.testing.assert_array_equal(got, 2.0 * k + np.arange(float(N)))
    del held


def test_arguments_are_held_until_their_launch_has_run():
    """The argument is read at the end of a loop, when all that others write has been written."""
    from cuda.core import Stream

    cupy = pytest.importorskip("cupy")
    other, steps = cupy.cuda.Stream(non_blocking=True), 100_000

    @tracegraph.jit(device="cuda")
    def late(x, table):
        return fori_loop(0, steps, lambda i, x: x + 1, x, schedule="conditional") + table

    x = tracegraph.asarray(np.zeros(N), device="cuda")
    with other:
        table = cupy.arange(N, dtype=cupy.float64)
        late(x, table).synchronize()
        poisoned = [cupy.full(N, cupy.nan) for _ in range(8)]  # memory and code are there, now
        del poisoned
        result = late(x, table)
        end = Stream.from_handle(result.__cuda_array_interface__["stream"]).record()
        pointer = table.data.ptr
        del table
        poisoned = [cupy.full(N, cupy.nan) for _ in range(8)]
        assert not end.is_done
        other.synchronize()  # a sanitizer lets it wait for the loop
    assert pointer not in {array.data.ptr for array in poisoned}
    np.testing.assert_array_equal(np.asarray(result), steps + np.arange(float(N)))
    with other:
        assert pointer in {cupy.empty(N).data.ptr for _ in range(2)}  # let go of by the wait


def test_results_outlive_their_executable_and_its_function():
    def results():
        run = tracegraph.jit(lambda x: (x + 1, x @ x), device="cuda")
        return run(np.eye(64))

    plus, square = results()
    gc.collect()
    held = poison()
    np.testing.assert_array_equal(np.asarray(plus), np.eye(64) + 1)
    np.testing.assert_array_equal(np.asarray(square), np.eye(64))
    del held


def product_with(x):
    table = tracegraph.asarray(x.T.copy(), device="cuda")
    run = tracegraph.jit(lambda x: x @ table, device="cuda")
    return run.lower(tracegraph.ArrayType("float64", x.shape)).compile()


def test_a_product_runs_when_only_its_executable_is_left():
    x = np.random.default_rng(3).standard_normal((128, 128))
    compiled = product_with(x)
    whats = {slot.what for node in compiled.slots.nodes for slot in node.slots}
    assert {"library handle", "library workspace", "module"} <= whats
    gc.collect()
    held = poison()
    np.testing.assert_allclose(np.asarray(compiled(x)), x @ x.T, rtol=1e-10, atol=1e-10)
    del held


class Model:
    """An object with an array, and with a function that refers to the object."""

    def __init__(self):
        self.table = tracegraph.asarray(np.arange(float(N)), device="cuda")
        self.run = tracegraph.jit(lambda x: x + self.table, device="cuda")


def object_cycle():
    model = Model()
    np.testing.assert_array_equal(np.asarray(model.run(np.ones(N))), np.arange(N) + 1.0)
    (cached,) = model.run._builds.executables.values()
    return weakref.ref(cached.compiled.executable), weakref.ref(model)


def callback_cycle():
    """A function that a loop reports to, and that refers to what reports."""
    seen = []

    def told(step, total):
        seen.append((compiled, step))

    run = tracegraph.jit(lambda x: fori_loop(0, 3, lambda i, x: x + 1, x, progress=told))
    compiled = run.lower(tracegraph.asarray(np.zeros(N), device="cuda")).compile()
    np.testing.assert_array_equal(np.asarray(compiled(np.zeros(N))), np.full(N, 3.0))
    assert seen
    return weakref.ref(compiled.executable), weakref.ref(told)


@pytest.mark.parametrize("cycle", [object_cycle, callback_cycle])
def test_an_executable_that_refers_to_itself_is_collected(cycle):
    gc.collect()
    tracegraph.memory_stats()
    before = owners_of_graphs()
    found = cycle()
    gc.collect()
    assert [each() for each in found] == [None, None]
    assert owners_of_graphs() == before


def owners_of_graphs():
    """How many slot tables graphs keep alive."""
    from lowering.cuda.open_devices import open_device

    return len(open_device(0).driver._user_objects._owners)


def test_a_launch_in_flight_outlives_its_executable_and_its_function():
    """Much scratch memory, constants and code are in use while nothing refers to them."""
    size = 4096
    x = tracegraph.asarray(np.full((size, size), 1 / size, np.float32), device="cuda")

    def product(x):
        table = np.full((size, size), 1.0, np.float32)
        for _ in range(6):
            x = (x @ table) * (1 / size) + table * 0
        return x * size

    tracegraph.jit(product, device="cuda")(x).synchronize()  # the library is loaded
    run = tracegraph.jit(lambda x: product(x), device="cuda")
    compiled = run.lower(x).compile()
    result = compiled(x)
    del run, compiled, x
    gc.collect()
    held = [tracegraph.asarray(np.full((size, size), np.nan, np.float32), device="cuda")]
    np.testing.assert_allclose(np.asarray(result), 1.0, rtol=1e-3)
    del held
