"""Exported graphs in the hands of others: other streams, clones, updates, any order of the ends."""

import gc
import itertools
import weakref

import numpy as np
import pytest

import tracegraph
from tests.fakes.foreign_graphs import checked, comes
from tests.helpers.compiled import on_device

N = 50_000
X = np.linspace(1, 100, N)


def affine(x):
    return x * 2 + np.arange(float(N))


def root(x):
    """A loop that is one kernel."""
    step = lambda i, y: (y + x / y) / 2  # noqa: E731
    return tracegraph.fori_loop(0, 30, step, x, schedule="one_kernel")


EXPECTED = {affine: lambda x: x * 2 + np.arange(float(N)), root: np.sqrt}
FUNCTIONS = pytest.mark.parametrize("function", [affine, root])


def exported(function, x):
    compiled = tracegraph.jit(function, device="cuda").lower(x).compile()
    return compiled.export_graph(x)


def agrees(result, function, x):
    np.testing.assert_allclose(np.asarray(result), EXPECTED[function](x))


def poison():
    return [on_device(np.full(N + k, np.nan)) for k in range(16)]


def stream_of(name):
    """A stream of a library, as cuda.core's, and what keeps it."""
    from cuda.core import Device, Stream

    Device(0).set_current()
    library = pytest.importorskip(name)
    if name == "torch":
        own = library.cuda.Stream()
        return Stream.from_handle(own.cuda_stream), own
    own = library.cuda.Stream(non_blocking=True)
    return Stream.from_handle(own.ptr), own


@FUNCTIONS
@pytest.mark.parametrize("name", ["torch", "cupy"])
def test_it_is_launched_on_streams_of_other_libraries(function, name):
    stream, own = stream_of(name)
    library = pytest.importorskip(name)
    x = library.asarray(X) if name == "cupy" else library.from_numpy(X.copy()).cuda()
    given = exported(function, x)
    executable = given.definition.instantiate()
    for factor in (2, 3):
        x *= factor
        library.cuda.synchronize() if name == "torch" else library.cuda.Device().synchronize()
        executable.launch(stream)
        own.synchronize()
        agrees(given.results, function, np.asarray(x.cpu() if name == "torch" else x.get()))


@FUNCTIONS
def test_it_is_a_child_among_work_of_others(function, stream):
    from cuda.core.graph import GraphDefinition

    cupy = pytest.importorskip("cupy")
    x, source = cupy.zeros(N), cupy.asarray(X)
    copied = cupy.zeros(N)
    outer = GraphDefinition()

    def build():
        given = exported(function, x)
        first = outer.memcpy(x.data.ptr, source.data.ptr, x.nbytes)
        child = first.embed(given.definition)
        child.memcpy(copied.data.ptr, given.results.__cuda_array_interface__["data"][0], x.nbytes)

    build()
    gc.collect()
    held = poison()
    executable = outer.instantiate()
    for factor in (1.0, 4.0):
        source[:] = cupy.asarray(X * factor)
        cupy.cuda.Device().synchronize()
        executable.launch(stream)
        stream.sync()
        np.testing.assert_allclose(copied.get(), EXPECTED[function](X * factor))
    del held


@FUNCTIONS
def test_an_executable_is_updated_to_another_graph_of_the_kind(function, stream):
    """From then on it keeps what the new graph points to, and not what the old one did."""
    executables, owners, results = [], [], []
    for factor in (1.0, 5.0):
        x = on_device(X * factor)
        owners.append(weakref.ref(x.memory))
        given = exported(function, x)
        results.append(given.results)
        if not executables:
            executables.append(given.definition.instantiate())
        else:
            executables[0].update(given.definition)
        del x, given
    gc.collect()
    held = poison()
    executables[0].launch(stream)
    stream.sync()
    agrees(results[1], function, X * 5)
    assert owners[1]() is not None
    results.clear()
    assert comes(lambda: owners[0]() is None)
    executables.clear()
    assert comes(lambda: owners[1]() is None)
    del held


@FUNCTIONS
def test_a_clone_has_all_that_it_needs(function, stream):
    from cuda.bindings import driver  # noqa: TID251 - clones, as other code does

    def clone():
        x = on_device(X)
        given = exported(function, x)
        return (
            checked(driver.cuGraphClone(given.definition.handle)),
            given.results,
            weakref.ref(x.memory),
        )

    graph, result, owner = clone()
    gc.collect()
    held = poison()
    assert owner() is not None
    executable = checked(driver.cuGraphInstantiate(graph, 0))
    checked(driver.cuGraphDestroy(graph))
    checked(driver.cuGraphLaunch(executable, stream.handle))
    stream.sync()
    agrees(result, function, X)
    checked(driver.cuGraphExecDestroy(executable))
    del held
    assert comes(lambda: owner() is None)


@FUNCTIONS
@pytest.mark.parametrize("order", list(itertools.permutations(range(4))), ids=str)
def test_they_end_in_any_order(function, order, stream):
    from cuda.core.graph import GraphDefinition

    x = on_device(X)
    given, outer = exported(function, x), GraphDefinition()
    outer.embed(given.definition)
    result, owner = given.results, weakref.ref(x.memory)
    # executables last: they are launched until they go
    things = [given, outer, given.definition.instantiate(), outer.instantiate()]
    del x, given, outer

    def launch(executable):
        if executable is not None:
            executable.launch(stream)
            stream.sync()
            agrees(result, function, X)

    for end in order:
        things[end] = None
        gc.collect()
        for position in (2, 3):
            launch(things[position])
    assert comes(lambda: owner() is None)


def test_a_loop_in_one_kernel_may_have_several_executables(stream):
    """A graph with conditional nodes may have one at a time."""
    given = exported(root, on_device(X))
    executables = [given.definition.instantiate() for _ in range(3)]
    for executable in executables:
        executable.launch(stream)
    stream.sync()
    agrees(given.results, root, X)
