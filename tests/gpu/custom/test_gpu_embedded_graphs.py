"""Somebody's graphs as children of ours."""

import gc

import numpy as np
import pytest

import tracegraph
from tests.helpers.compiled import on_device
from tracegraph import errors

N = 10_000
X = np.arange(float(N))


def memory(count):
    return [on_device(np.full(N, np.nan)) for _ in range(count)]


class Scaled:
    """A graph of cuda.core that doubles an array: one that tracegraph has exported."""

    def __init__(self, function=lambda x: x * 2):
        (self.at,) = memory(1)
        compiled = tracegraph.jit(function, device="cuda").lower(self.at).compile()
        exported = compiled.export_graph(self.at)
        self.graph, self.out = exported.definition, exported.results

    def __call__(self, x):
        return tracegraph.embed(self.graph, reads=x, at=self.at, out=self.out, host=lambda x: 2 * x)


def agrees(f, *arguments):
    on_host = tracegraph.jit(f, device="host")(*arguments)
    jitted = tracegraph.jit(f, device="cuda")
    for _ in range(3):
        np.testing.assert_allclose(np.asarray(jitted(*arguments)), np.asarray(on_host))
    with tracegraph.stream(tracegraph.Stream("cuda")):
        np.testing.assert_allclose(np.asarray(jitted(*arguments)), np.asarray(on_host))


@pytest.mark.parametrize("options", [{}, {"scratch": "per_launch"}])
def test_at_the_top_of_a_graph(options):
    scaled = Scaled()
    jitted = tracegraph.jit(lambda x: scaled(x + 1) - 1, device="cuda", **options)
    for k in range(4):
        np.testing.assert_array_equal(np.asarray(jitted(X + k)), 2 * (X + k) + 1)


@pytest.mark.parametrize("schedule", ["conditional", "unrolled"])
def test_in_loops(schedule):
    scaled = Scaled()
    agrees(
        lambda x: tracegraph.fori_loop(0, 4, lambda i, y: scaled(y) + i, x, schedule=schedule), X
    )


def test_in_branches_and_lanes():
    scaled = Scaled()
    for start in (X, X - 1):
        agrees(
            lambda x: tracegraph.cond(x[0] < 0, scaled, lambda x: -x, x, schedule="conditional"),
            start,
        )
    agrees(tracegraph.vmap(scaled), np.stack([X, X + 1, X + 2]))


def test_two_graphs_with_one_memory():
    scaled = Scaled()
    agrees(lambda x: (scaled(x) + scaled(x + 1)) * scaled(x - 1), X)


def test_a_loop_in_one_kernel_is_embedded():
    def root(x):
        step = lambda i, y: (y + x / y) / 2  # noqa: E731
        return tracegraph.fori_loop(0, 30, step, x, schedule="one_kernel")

    scaled = Scaled(root)
    jitted = tracegraph.jit(lambda x: scaled(x + 1), device="cuda")
    np.testing.assert_allclose(np.asarray(jitted(X)), np.sqrt(X + 1))


def test_it_lives_as_long_as_our_graph():
    jitted = tracegraph.jit(Scaled().__call__, device="cuda")
    jitted(X).synchronize()
    gc.collect()
    held = memory(16)
    np.testing.assert_array_equal(np.asarray(jitted(X + 1)), 2 * X + 2)
    with tracegraph.stream(tracegraph.Stream("cuda")):
        np.testing.assert_array_equal(np.asarray(jitted(X + 1)), 2 * X + 2)
    del held


def test_a_graph_by_handle_and_without_results():
    cupy = pytest.importorskip("cupy")
    at, total = cupy.zeros(N), cupy.zeros(N)
    stream = cupy.cuda.Stream(non_blocking=True)
    cupy.add(at, total, out=total)
    cupy.cuda.Device().synchronize()
    with stream:
        stream.begin_capture()
        cupy.add(at, total, out=total)
        graph = stream.end_capture()

    def f(x):
        def step(i, y):
            tracegraph.embed(int(graph.graph), reads=y, at=at)
            return y + 1

        return tracegraph.fori_loop(0, 5, step, x, schedule="conditional")

    jitted = tracegraph.jit(f, device="cuda")
    for k in (1, 2):
        np.testing.assert_array_equal(np.asarray(jitted(X)), X + 5)
        np.testing.assert_array_equal(total.get(), k * (5 * X + 10))


def test_a_graph_of_torch():
    torch = pytest.importorskip("torch")
    at = torch.zeros(N, device="cuda", dtype=torch.float64)
    graph = torch.cuda.CUDAGraph(keep_graph=True)
    with torch.cuda.graph(graph):
        out = torch.relu(at - 5)

    def f(x):
        return (
            tracegraph.embed(
                graph,
                reads=x,
                at=at,
                out=out,
                host=lambda x: np.maximum(x - 5, 0),
            )
            * 2
        )

    agrees(f, X)


def test_what_no_child_may_hold_is_refused():
    def looped(x):
        return tracegraph.fori_loop(0, 3, lambda i, y: y * 2, x, schedule="conditional")

    with pytest.raises(errors.CapturedCallError, match=r"conditional, .*no child graph") as caught:
        tracegraph.jit(Scaled(looped).__call__, device="cuda")(X)
    assert "test_gpu_embedded_graphs.py" in str(caught.value)
    agrees(Scaled().__call__, X)  # the device is usable


def test_our_graph_with_theirs_in_it_is_exported(stream):

    def export():
        scaled, x = Scaled(), on_device(X)
        compiled = tracegraph.jit(lambda x: scaled(x) + 1, device="cuda").lower(x).compile()
        return compiled.export_graph(x)

    exported = export()
    gc.collect()
    held = memory(16)
    executable = exported.definition.instantiate()
    executable.launch(stream)
    stream.sync()
    np.testing.assert_array_equal(np.asarray(exported.results), 2 * X + 1)
    del held
