"""tracegraph.embed on the host: its reference runs, in place of somebody's graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracegraph
from tracegraph import ArrayType, debug, errors

V = ArrayType("float64", (4,))
X = np.arange(4.0)


def doubled(x: Any) -> Any:
    return tracegraph.embed(7, reads=x, at=V, out=V, host=lambda x: 2 * x)


def device_array(type_: ArrayType = V, **changes: Any) -> Any:
    described = {
        "typestr": type_.dtype.str,
        "shape": type_.shape,
        "data": (1 << 40, False),
        "version": 3,
        **changes,
    }
    return type("DeviceArray", (), {"__cuda_array_interface__": described})()


def test_the_host_function_runs_eagerly_and_traced() -> None:
    np.testing.assert_array_equal(np.asarray(doubled(X)), 2 * X)
    np.testing.assert_array_equal(
        np.asarray(tracegraph.jit(lambda x: doubled(x + 1) - 1, device="host")(X)), 2 * X + 1
    )


def test_in_loops_branches_and_lanes() -> None:
    def f(x: Any) -> Any:
        y = tracegraph.fori_loop(0, 3, lambda i, y: doubled(y), x)
        return tracegraph.cond(y[1] > 0, doubled, lambda y: y, y)

    np.testing.assert_array_equal(np.asarray(tracegraph.jit(f, device="host")(X)), 16 * X)
    lanes = np.stack([X, X + 1, X + 2])
    np.testing.assert_array_equal(np.asarray(tracegraph.vmap(doubled)(lanes)), 2 * lanes)


def test_several_outputs_of_several_types() -> None:
    flag = ArrayType("bool", ())

    def f(x: Any, y: Any) -> Any:
        return tracegraph.embed(
            7,
            reads=(x, y),
            at=(V, device_array()),
            out=(V, flag),
            host=lambda x, y: (x - y, x[0] < y[0]),
        )

    total, less = tracegraph.jit(f, device="host")(X, 2 * X + 1)
    np.testing.assert_array_equal(np.asarray(total), -X - 1)
    assert bool(less)


def test_a_tuple_of_one_output_stays_one() -> None:
    (y,) = tracegraph.embed(7, reads=X, at=V, out=(V,), host=lambda x: (x,))
    np.testing.assert_array_equal(np.asarray(y), X)


def test_without_outputs_it_runs_once_each_time_in_the_order_of_prints(capsys: Any) -> None:
    def f(x: Any) -> Any:
        def step(i: Any, y: Any) -> Any:
            debug.print("{}", i)
            tracegraph.embed(7, reads=y, at=V, host=lambda y: print("reads", y[0]))
            return y + 1

        return tracegraph.fori_loop(0, 3, step, x)

    tracegraph.jit(f, device="host")(X)
    assert capsys.readouterr().out.split("\n")[:-1] == [
        *("0", "reads 0.0", "1", "reads 1.0", "2", "reads 2.0")
    ]
    tracegraph.embed(7, host=lambda: print("eagerly"))
    assert capsys.readouterr().out == "eagerly\n"


def test_lanes_run_it_one_after_the_other() -> None:
    seen: list[float] = []

    def f(x: Any) -> Any:
        tracegraph.embed(7, reads=x, at=ArrayType(float), host=lambda x: seen.append(float(x)))
        return x

    tracegraph.jit(tracegraph.vmap(f), device="host")(X)
    assert seen == X.tolist()


def test_the_plan_names_the_node_and_the_line() -> None:
    plan = tracegraph.jit(doubled, device="cuda").lower(X).plan
    (node,) = [node for node in plan.graph.nodes if node.kind == "graph"]
    assert "embedded graph" in str(plan)
    assert node.tone == "captured"
    assert "test_embedded_graphs.py" in str(node.sources[0])


GRAPHS = {
    "cuda.core": type("GraphDefinition", (), {"handle": 7}),
    "CuPy": type("Graph", (), {"graph": 7}),
    "PyTorch": type("CUDAGraph", (), {"raw_cuda_graph": lambda self: 7}),
}


@pytest.mark.parametrize("library", GRAPHS)
def test_graphs_of_libraries_are_kept_with_their_handle(library: str) -> None:
    graph = GRAPHS[library]()

    def f(x: Any) -> Any:
        return tracegraph.embed(graph, reads=x, at=V, out=V, host=np.cumsum)

    traced = tracegraph.jit(f, device="host").trace(X)
    (call,) = [e.attrs["call"] for e in traced.program.body.eqns if "call" in e.attrs]
    assert call.kernel.code.handle == 7
    assert call.kernel.code.owner is graph


class KeepsNoGraph:
    """A CUDAGraph of PyTorch by default."""

    def raw_cuda_graph(self) -> int:
        raise RuntimeError("not kept")


class CUgraphExec(int):
    """What the handle of an executable graph is an instance of."""


MISUSES: list[tuple[dict[str, Any], str]] = [
    ({"graph": "graph"}, "GraphDefinition of cuda.core"),
    ({"graph": 0}, "GraphDefinition of cuda.core"),
    ({"graph": True}, "GraphDefinition of cuda.core"),
    ({"graph": CUgraphExec(3)}, "an executable graph cannot be embedded"),
    ({"graph": KeepsNoGraph()}, r"keep_graph=True\) \(not kept\)"),
    ({"host": 3}, "host must be a function"),
    ({"at": ()}, "reads has 1 arrays and at 0"),
    ({"at": ArrayType("float32", (4,))}, r"reads\[0\] is f64\[4\], and at\[0\] f32\[4\]"),
    ({"at": X}, "arrays in device memory"),
    ({"at": device_array(strides=(16,))}, "not contiguous"),
    ({"at": device_array(data=(1 << 40, True))}, "read-only"),
    ({"out": ()}, "out is empty"),
    ({"out": "y"}, "arrays in device memory"),
    ({"reads": "x"}, "reads:"),
]


@pytest.mark.parametrize(("changes", "match"), MISUSES)
def test_misuse_is_named_with_the_line(changes: dict[str, Any], match: str) -> None:
    given: dict[str, Any] = {"graph": 7, "reads": X, "at": V, "out": V, **changes}
    graph = given.pop("graph")
    with pytest.raises(errors.CustomKernelError, match=match) as caught:
        tracegraph.jit(lambda: tracegraph.embed(graph, **given), device="host")()
    assert "embedded graph at" in str(caught.value)
    assert "test_embedded_graphs.py" in str(caught.value)


@pytest.mark.parametrize("out", [V, None])
def test_without_a_host_function_the_host_refuses(out: Any) -> None:
    f = tracegraph.jit(lambda x: tracegraph.embed(7, reads=x, at=V, out=out), device="host")
    with pytest.raises(errors.CustomKernelError, match=r"runs on CUDA only.*as host="):
        f(X)


def test_a_host_function_that_returns_something_else() -> None:
    f = tracegraph.jit(
        lambda x: tracegraph.embed(7, reads=x, at=V, out=V, host=lambda x: x[:2]), device="host"
    )
    with pytest.raises(errors.KernelResultError, match="embedded graph at"):
        f(X)


def test_it_has_no_derivative() -> None:
    with pytest.raises(errors.DerivativeError, match=r"embedded graph at .* has no derivative"):
        tracegraph.grad(lambda x: doubled(x).sum())(X)


def test_in_the_condition_of_a_loop_only_with_results() -> None:
    def loop(test: Any) -> Any:
        return tracegraph.jit(
            lambda x: tracegraph.while_loop(test, lambda y: y + 1, x), device="host"
        )(X)

    np.testing.assert_array_equal(np.asarray(loop(lambda y: doubled(y)[0] < 4)), X + 2)

    def effect(y: Any) -> Any:
        tracegraph.embed(7, reads=y, at=V, host=lambda y: None)
        return y[0] < 4

    with pytest.raises(errors.EffectInConditionError, match="embed"):
        loop(effect)


def test_plans_with_it_are_explained_and_drawn() -> None:
    lowered = tracegraph.jit(doubled, device="cuda").lower(X)
    for text in (str(lowered.plan), lowered.dot(), str(lowered.diagram())):
        assert "embedded graph" in text
    assert "nodes" in lowered.explain()
