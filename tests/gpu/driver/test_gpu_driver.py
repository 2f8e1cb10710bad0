"""The driver's own promises: captures are closed, owners are held, errors say what failed."""

import ctypes
import gc
import threading
import time
import weakref

import numpy as np
import pytest


@pytest.fixture(scope="module")
def device():
    from lowering.cuda.open_devices import open_device

    opened = open_device(0)
    opened.driver.activate()
    return opened


@pytest.fixture(scope="module")
def driver(device):
    return device.driver


@pytest.fixture(scope="module")
def fill(device):
    source = (
        'extern "C" __global__ void fill(long long* x, unsigned long long value) '
        "{ x[threadIdx.x] = (long long)value; }"
    )
    from lowering.cuda.interface import Launch

    module = device.driver.load(device.compile(source))
    return Launch(device.driver.kernel(module, "fill"), (1, 1, 1), (8, 1, 1))


def filling(driver, fill, value, *memory):
    """An executable that keeps some pieces of memory and fills the first; and its kernel."""
    from lowering.plan.owners import SlotTable

    slots, graph = SlotTable(), driver.new_graph()
    slots.retain(*memory)
    kernel = driver.add_kernel(graph, [], fill, [memory[0].pointer, value])
    return driver.instantiate(driver.tie(graph, slots)), kernel


def read(device, pointer):
    target = np.empty(8, np.int64)
    device.driver.copy_to_host(target, pointer)
    return target


def test_parameters_are_updated_in_an_executable(device, fill):
    driver = device.driver
    first, second = driver.allocate(64), driver.allocate(64)
    executable, kernel = filling(driver, fill, 5, first, second)
    driver.launcher(executable)()
    np.testing.assert_array_equal(read(device, first.pointer), 5)
    kernel.values[0], kernel.values[1] = second.pointer, 2**64 - 3
    driver.updater(executable, kernel)()
    driver.launcher(executable)()
    np.testing.assert_array_equal(read(device, second.pointer), -3)
    np.testing.assert_array_equal(read(device, first.pointer), 5)
    driver.close(executable)


def test_kernels_share_the_words_of_addresses(device, fill):
    driver = device.driver
    first, second = driver.allocate(64), driver.allocate(64)
    executable, kernel = filling(driver, fill, 5, first, second)
    words = (ctypes.c_uint64 * 3)(1, first.pointer, 2)
    kernel.share(0, words, 1)
    update = driver.updater(executable, kernel)
    words[:] = [3, second.pointer, 4]
    del words
    gc.collect()
    update()
    driver.clear(first.pointer, 64)
    driver.launcher(executable)()
    np.testing.assert_array_equal(read(device, second.pointer), 5)
    np.testing.assert_array_equal(read(device, first.pointer), 0)
    driver.close(executable)


def graphs_of_a_fill(driver, fill, value):
    """A tied graph that fills memory which it alone keeps, the address, and its slots, weakly."""
    from lowering.plan.owners import SlotTable

    slots, graph, memory = SlotTable(), driver.new_graph(), driver.allocate(64)
    slots.retain(memory)
    driver.add_kernel(graph, [], fill, [memory.pointer, value])
    return driver.tie(graph, slots), memory.pointer, weakref.ref(slots)


def poison(driver, pointer):
    """Memory in the place of what is free, where `pointer` is not."""
    pieces = [driver.allocate(64) for _ in range(64)]
    assert pointer not in {piece.pointer for piece in pieces}
    return pieces


def test_a_graph_holds_the_owners_of_its_nodes_for_its_executables(device, fill):
    driver = device.driver
    tied, pointer, held = graphs_of_a_fill(driver, fill, 9)
    executables = [driver.instantiate(tied) for _ in range(2)]
    del tied
    while executables:
        gc.collect()
        assert held() is not None
        pieces = poison(driver, pointer)
        driver.launcher(executables[-1])()
        np.testing.assert_array_equal(read(device, pointer), 9)
        driver.clear(pointer, 64)
        driver.close(executables.pop())
        del pieces
    assert held() is None  # at once


def test_a_graph_holds_the_owners_of_its_nodes_wherever_it_goes(device, fill):
    """As the driver copies it, for somebody who has the handle alone."""
    from cuda.bindings import driver as cuda  # noqa: TID251 - as other code would

    from lowering.driver.error_checks import check

    driver = device.driver
    tied, pointer, held = graphs_of_a_fill(driver, fill, 7)
    own = driver.instantiate(tied)
    copy = check("cuGraphClone", cuda.cuGraphClone(tied.definition.handle))
    driver.close(own)
    del tied, own
    gc.collect()
    driver.release_tied()
    assert held() is not None
    pieces = poison(driver, pointer)
    executable = check("cuGraphInstantiate", cuda.cuGraphInstantiate(copy, 0))
    check("cuGraphDestroy", cuda.cuGraphDestroy(copy))
    check("cuGraphLaunch", cuda.cuGraphLaunch(executable, driver.stream))
    np.testing.assert_array_equal(read(device, pointer), 7)
    driver.release_tied()
    assert held() is not None
    released_by = []
    weakref.finalize(held(), lambda: released_by.append(threading.get_ident()))
    check("cuGraphExecDestroy", cuda.cuGraphExecDestroy(executable))
    deadline = time.monotonic() + 20
    while held() is not None and time.monotonic() < deadline:
        driver.release_tied()  # once the driver has called the destructor
        time.sleep(0.001)
    assert held() is None
    assert released_by == [threading.get_ident()]  # and not a thread of the driver
    del pieces


@pytest.mark.parametrize("raised", [KeyError, KeyboardInterrupt, GeneratorExit])
def test_an_exception_while_capturing_leaves_no_capture_open(device, fill, raised):
    from lowering.plan.owners import SlotTable

    driver = device.driver
    graph = driver.new_graph()

    def fail():
        raise raised("while capturing")

    for _ in range(2):
        with pytest.raises(raised):
            driver.capture(graph, [], fail)
    ends, kinds = driver.capture(graph, [], lambda: None)
    assert (ends, kinds) == ((), ())
    driver.close(driver.instantiate(driver.tie(driver.new_graph(), SlotTable())))


def test_a_product_is_captured_behind_its_dependencies(device, fill):
    from lowering.cuda.interface import Gemm
    from lowering.cuda.libraries.cublas import Cublas
    from lowering.plan.owners import SlotTable

    driver, library, slots = device.driver, device.driver.library(Cublas), SlotTable()
    memory, workspace = driver.allocate(3 * 256), driver.allocate(32 << 20)
    slots.retain(memory, workspace)
    a, b, c = (memory.pointer + 256 * i for i in range(3))
    x = np.arange(16.0).reshape(4, 4)
    driver.copy_to_device(a, x)
    driver.copy_to_device(b, x + 1)
    driver.synchronize()
    gemm = Gemm(np.dtype("f8"), False, False, 4, 4, 4, b, 4, 0, a, 4, 0, c, 4, 0, 1)
    library.use_workspace(workspace.pointer, 32 << 20)
    library.multiply(gemm)
    driver.synchronize_capture_stream()
    graph = driver.new_graph()
    first = driver.add_kernel(graph, [], fill, [c, 1])
    ends, kinds = driver.capture(graph, [first.node], lambda: library.multiply(gemm))
    assert ends
    assert set(kinds) <= {"kernel", "memset"}
    executable = driver.instantiate(driver.tie(graph, slots))
    driver.launcher(executable)()
    result = np.empty((4, 4))
    driver.copy_to_host(result, c)
    np.testing.assert_allclose(result, x @ (x + 1))
    driver.close(executable)


def test_errors_name_the_function_and_the_code(device):
    from cuda.bindings import driver  # noqa: TID251 - asks, and changes nothing

    from lowering.driver.error_checks import CudaError, check

    told = r"cuDeviceGet failed with CUDA_ERROR_INVALID_DEVICE: \w+"
    with pytest.raises(CudaError, match=told):
        check("cuDeviceGet", driver.cuDeviceGet(9999))


def test_more_memory_than_there_is_raises_memory_error(device):
    with pytest.raises(MemoryError, match="cuda:0"):
        device.pool.take(1 << 50)
    assert device.pool.take(64).pointer


def test_a_device_that_does_not_exist_is_named():
    from lowering.cuda.open_devices import open_device

    with pytest.raises(RuntimeError, match="cuda:99"):
        open_device(99)


def test_a_node_whose_edges_are_refused_does_not_stay(driver, fill):
    graph, other = driver.new_graph(), driver.new_graph()
    foreign = driver.add_kernel(other, [], fill, [0, 1]).node
    condition, _ = driver.create_condition(graph)
    with pytest.raises(RuntimeError, match="cuGraphAddKernelNode"):
        driver.add_kernel(graph, [foreign], fill, [0, 1])
    with pytest.raises(RuntimeError, match="cuGraphAddDependencies"):
        driver.add_conditional(graph, [foreign], "if_else", condition, 2)
    assert not graph.nodes()


def test_a_capture_is_not_begun_inside_another(driver):
    from lowering.errors import NestedCaptureError

    graph, inner = driver.new_graph(), driver.new_graph()
    with pytest.raises(NestedCaptureError):
        driver.capture(graph, [], lambda: driver.capture(inner, [], lambda: None))
    assert driver.capture(graph, [], lambda: None) == ((), ())


def test_a_closed_graph_is_neither_launched_nor_updated(driver, fill):
    from lowering.errors import ClosedGraphError
    from lowering.plan.owners import SlotTable

    graph = driver.new_graph()
    kernel = driver.add_kernel(graph, [], fill, [0, 1])
    executable = driver.instantiate(driver.tie(graph, SlotTable()))
    driver.close(executable)
    with pytest.raises(ClosedGraphError):
        driver.launcher(executable)()
    with pytest.raises(ClosedGraphError):
        driver.updater(executable, kernel)()


def defined(driver, fill, pointer, values, looped=False):
    """A definition whose kernels, one after the other, fill memory with the values; and those."""
    from lowering.cuda.graph.definition import Definition
    from lowering.plan.owners import NodeSlots, SlotTable

    definition, node = Definition(driver, SlotTable(), "filling"), NodeSlots("kernel", "fill", "")
    kernels, before = [], []
    with definition.building() as graph:
        if looped:
            condition, _ = driver.create_condition(graph)
            definition.add_conditional(graph, [], "if_else", condition, 2, node)
        for value in values:
            words, owned = [pointer, value], [False, False]
            kernels.append(definition.add_kernel(graph, before, fill, words, owned, node))
            before = [kernels[-1].node]
    return definition, kernels


@pytest.mark.parametrize("looped", [False, True], ids=["same_topology", "another_topology"])
def test_an_executable_is_not_updated_by_a_node_of_another_graph(device, fill, looped):
    from lowering.errors import ForeignNodeError

    driver, memory = device.driver, device.driver.allocate(64)
    definition, (kernel,) = defined(driver, fill, memory.pointer, [5])
    other, foreign = defined(driver, fill, memory.pointer, [6, 7], looped)
    executable, theirs = definition.instantiate(), other.instantiate()
    for node in foreign:
        with pytest.raises(RuntimeError, match="cuGraphExecKernelNodeSetParams failed"):
            driver.updater(executable, node)()  # what the driver says
        with pytest.raises(ForeignNodeError, match="does not belong to the graph"):
            definition.updater(executable, node)
        with pytest.raises(ForeignNodeError, match=r"the kernel node fill .* does not belong"):
            other.updater(executable, node)
    driver.launcher(executable)()
    np.testing.assert_array_equal(read(device, memory.pointer), 5)
    kernel.values[1] = 8
    definition.updater(executable, kernel)()
    driver.launcher(executable)()
    np.testing.assert_array_equal(read(device, memory.pointer), 8)
    driver.close(executable)
    driver.close(theirs)


def test_an_executable_is_not_updated_by_a_graph_that_is_closed(device, fill):
    from lowering.errors import NoExecutableError

    driver, memory = device.driver, device.driver.allocate(64)
    definition, (kernel,) = defined(driver, fill, memory.pointer, [5])
    executable = definition.instantiate()
    definition.close()
    with pytest.raises(NoExecutableError, match="it is closed"):
        definition.updater(executable, kernel)
    driver.launcher(executable)()
    np.testing.assert_array_equal(read(device, memory.pointer), 5)
    driver.close(executable)


def test_pinned_memory_is_used_again_until_it_is_trimmed(driver):
    size = 3 << 20
    kept, memory = driver.allocate_host(size), driver.allocate_host(size)
    kept.bytes[:] = 5
    pointer = memory.pointer
    del memory
    gc.collect()
    memory = driver.allocate_host(size)
    assert memory.pointer == pointer
    del memory
    gc.collect()
    driver.trim_host()
    assert (kept.bytes == 5).all()
    driver.allocate_host(size).bytes[:] = 6
