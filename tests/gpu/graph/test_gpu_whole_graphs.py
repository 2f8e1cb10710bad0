"""What users can ask of whole graphs, on a device."""

import ctypes
import gc
import time
import weakref

import numpy as np
import pytest

import tracegraph
from lowering.plan.target import overrides as choices
from lowering.plan.target.features import override
from tracegraph.errors import FallbackWarning, InstantiationError, RawMemoryError
from tracegraph.staging import fallbacks


def test_a_supported_driver_has_all_but_what_the_device_lacks():
    found = tracegraph.features("cuda")
    print(found)
    modern = found.compute_capability >= (9, 0)
    assert found.cuda_version >= (13, 0)
    assert found.conditional_nodes
    assert found.cooperative_launches
    assert found.clusters == modern
    assert found.programmatic_edges == modern
    assert found == tracegraph.features("cuda:0")


def test_probes_leave_the_device_usable():
    tracegraph.features("cuda")
    double = tracegraph.jit(lambda x: 2 * x, device="cuda")
    np.testing.assert_array_equal(np.asarray(double(np.arange(3.0))), [0, 2, 4])


def test_a_loop_that_the_host_drives_warns_and_computes_the_same(monkeypatch):
    monkeypatch.setattr(fallbacks, "_warned", set())

    def halve(x):
        return tracegraph.while_loop(lambda x: x.sum() > 1, lambda x: x / 2, x)

    x = np.ones(300)
    with (
        override(conditional_nodes=False),
        choices.override(loops="conditional"),
        pytest.warns(FallbackWarning, match=r"the host drives while_loop at test_gpu_whole"),
    ):
        driven = tracegraph.jit(halve, device="cuda")(x)
    np.testing.assert_array_equal(np.asarray(driven), x / 512)


def test_launches_count_the_arguments_that_they_copy_for_a_library():
    x = tracegraph.asarray(np.ones((512, 512)), device="cuda")
    product = tracegraph.jit(lambda x, y: x @ y, device="cuda")
    with choices.override(operands="copied"):
        for _ in range(3):
            product(x, x)
    assert product.stats()["bytes_copied"] == 6 * x.nbytes


def test_a_warmed_function_builds_nothing_at_its_first_call():
    f = tracegraph.jit(
        lambda x: tracegraph.while_loop(lambda x: x.sum() > 1, lambda x: x / 2, x), device="cuda"
    )
    with choices.override(loops="conditional"):
        f.warm(tracegraph.ArrayType("float64", (300,)))
    assert (f.stats()["builds"], f.stats()["launches"]) == (1, 0)
    np.testing.assert_array_equal(np.asarray(f(np.ones(300))), np.ones(300) / 512)
    (program,) = f.programs()
    assert (program.launches, program.schedules[0].schedule) == (1, "WHILE node")


def test_a_graph_is_uploaded_for_each_stream():
    f = tracegraph.jit(lambda x: 2 * x, device="cuda")
    stream = tracegraph.Stream("cuda")
    with tracegraph.stream(stream):
        f.warm(tracegraph.ArrayType("float64", (300,)))
        result = f(np.ones(300))
    np.testing.assert_array_equal(np.asarray(result), np.full(300, 2.0))
    assert f.stats()["builds"] == 1


def filled(values):
    """Device memory with these values: its owner, which frees it, and an Array of it."""
    from lowering.cuda.open_devices import open_device

    driver = open_device(0).driver
    driver.activate()
    piece = driver.allocate(values.nbytes)
    driver.copy_to_device(piece.pointer, values)
    driver.synchronize()
    type_ = tracegraph.ArrayType(values.dtype, values.shape)
    return piece, tracegraph.owned(piece.pointer, type_, owner=piece, device="cuda")


@pytest.mark.parametrize("dtype", ["bool", "int8", "float16", "float32", "complex128"])
def test_raw_memory_is_read_where_it_is(dtype):
    values = np.arange(300).astype(dtype)
    _, array = filled(values)
    same = tracegraph.jit(lambda x: (x, x == x), device="cuda")
    for _ in range(3):
        got, equal = same(array)
        np.testing.assert_array_equal(np.asarray(got), values)
        assert np.asarray(equal).all()
    assert same.stats()["bytes_copied"] == 0
    np.testing.assert_array_equal(np.asarray(array), values)


def test_the_owner_of_raw_memory_lives_until_launches_have_run():
    values = np.ones(1 << 20)
    piece, array = filled(values)
    owner = weakref.ref(piece)
    f = tracegraph.jit(
        lambda x: tracegraph.fori_loop(0, 300, lambda i, y: y + x, x * 0), device="cuda"
    )
    results = [f(array) for _ in range(3)]
    del piece, array
    gc.collect()
    for result in results:
        np.testing.assert_array_equal(np.asarray(result), 300 * values)
    tracegraph.memory.trim()
    f(np.ones(1 << 20))
    gc.collect()
    assert owner() is None


def test_raw_memory_of_no_device_is_refused():
    with pytest.raises(RawMemoryError, match="in no memory that CUDA knows"):
        tracegraph.owned(4096, 8, owner=object(), device="cuda")
    piece, _ = filled(np.ones(8))
    with pytest.raises(RawMemoryError, match="its last byte"):
        tracegraph.owned(piece.pointer, 1 << 50, owner=piece, device="cuda")


def test_pinned_memory_is_raw_memory_too():
    from cuda.core import LegacyPinnedMemoryResource

    buffer = LegacyPinnedMemoryResource().allocate(800)
    address = int(buffer.handle)
    np.ctypeslib.as_array((ctypes.c_double * 100).from_address(address))[:] = 7
    type_ = tracegraph.ArrayType("float64", (100,))
    array = tracegraph.owned(address, type_, owner=buffer, device="cuda")
    double = tracegraph.jit(lambda x: 2 * x, device="cuda")
    np.testing.assert_array_equal(np.asarray(double(array)), np.full(100, 14.0))


def test_a_use_waits_for_the_stream_that_writes_raw_memory():
    producer = tracegraph.Stream("cuda")
    _, handle = producer.__cuda_stream__()
    slow = tracegraph.jit(
        lambda x: tracegraph.fori_loop(0, 2000, lambda i, y: y + 1, x, schedule="one_kernel"),
        device="cuda",
    )
    x = tracegraph.asarray(np.zeros(1 << 18), device="cuda")
    np.asarray(slow(x))
    with tracegraph.stream(producer):
        result = slow(x)
    buffer = result.data
    array = tracegraph.owned(
        buffer.pointer, buffer.type, owner=result, device="cuda", stream=handle
    )
    double = tracegraph.jit(lambda x: 2 * x, device="cuda")
    np.testing.assert_array_equal(np.asarray(double(array)), np.full(1 << 18, 4000.0))


def doubled_sum(x):
    return 2 * x + x.sum()


def looped(x):
    return tracegraph.while_loop(lambda x: x.sum() > 1, lambda x: x / 2, x, schedule="conditional")


def produced(x):
    return (x @ x).sum() + x


@pytest.mark.parametrize("function", [doubled_sum, looped, produced])
def test_an_executable_takes_over_another_exported_graph(function):
    a, b = np.full((64, 64), 3.0), np.full((64, 64), 5.0)
    compiled = tracegraph.jit(function, device="cuda").lower(a).compile()
    expected = [np.asarray(compiled(values)) for values in (a, b)]
    first, second = compiled.export_graph(a), compiled.export_graph(b)
    executable = first.instantiate()
    executable.upload()
    executable.launch()
    np.testing.assert_array_equal(np.asarray(first.results), expected[0])
    result = first.update(second)
    assert result, str(result)
    del first
    gc.collect()
    executable.launch()
    np.testing.assert_array_equal(np.asarray(second.results), expected[1])
    results = second.results
    del second
    gc.collect()
    executable.launch()
    np.testing.assert_array_equal(np.asarray(results), expected[1])
    executable.close()


def test_a_graph_that_differs_is_refused_and_changes_nothing():
    x = np.arange(300.0)
    one = tracegraph.jit(lambda x: 2 * x, device="cuda").lower(x).compile().export_graph(x)
    executable = one.instantiate()
    other = tracegraph.jit(looped, device="cuda").lower(x).compile().export_graph(x)
    result = one.update(other)
    assert not result
    assert result.reason
    executable.launch()
    np.testing.assert_array_equal(np.asarray(one.results), 2 * x)


def test_a_refused_node_is_named_with_its_line():
    x = np.arange(300.0)
    one = tracegraph.jit(looped, device="cuda").lower(x).compile().export_graph(x)

    def branched(x):
        return tracegraph.cond(
            x[0] > 1, lambda x: x / 2, lambda x: x + x.sum(), x, schedule="conditional"
        )

    other = tracegraph.jit(branched, device="cuda").lower(x).compile().export_graph(x)
    executable = one.instantiate()
    result = executable.update(other)
    print(result)
    assert not result


def test_a_second_executable_of_a_graph_with_loops_is_refused():
    x = np.arange(300.0)
    given = tracegraph.jit(looped, device="cuda").lower(x).compile().export_graph(x)
    first = given.instantiate()
    with pytest.raises(InstantiationError, match="one executable at a time") as refused:
        given.instantiate()
    print(refused.value)
    first.close()
    given.instantiate().launch()


def test_an_executable_of_cuda_core_is_updated(stream):
    a, b = np.arange(300.0), np.ones(300)
    compiled = tracegraph.jit(doubled_sum, device="cuda").lower(a).compile()
    first, second = compiled.export_graph(a), compiled.export_graph(b)
    executable = first.definition.instantiate()
    assert first.update(second, executable)
    executable.launch(stream)
    stream.sync()
    np.testing.assert_array_equal(np.asarray(second.results), doubled_sum(b))


def test_what_a_replaced_graph_owned_is_released_without_a_further_call():
    """By the thread that looks; the driver calls destructors when it likes."""
    x = np.ones(1 << 20)
    compiled = tracegraph.jit(lambda x: 2 * x, device="cuda").lower(x).compile()
    first, second = compiled.export_graph(x), compiled.export_graph(x)
    gone = weakref.ref(first.results.memory)
    executable = first.instantiate()
    executable.launch()
    assert first.update(second)
    del first
    gc.collect()
    deadline = time.monotonic() + 20
    while gone() is not None and time.monotonic() < deadline:
        time.sleep(0.05)
    assert gone() is None
    executable.launch()
    np.testing.assert_array_equal(np.asarray(second.results), 2 * x)
