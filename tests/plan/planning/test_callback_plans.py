"""Plans of programs that call back: nests, their order, and what is refused."""

import ctypes
from itertools import pairwise

import numpy as np
import pytest

import tracegraph
from lowering.plan.nests.kernel import CallNest, PrintNest
from lowering.plan.nodes import HostNode, KernelNode, walk
from tests.helpers.running import lowered
from tracegraph import ArrayType, debug, fori_loop, host_call, pure_callback
from tracegraph.errors import UnschedulableError

X = np.arange(3.0)
VECTOR = ArrayType(np.dtype(np.float64), (3,))
FREE = ctypes.CDLL(None).free


def calls(plan):
    return [
        nest
        for node in walk(plan.graph)
        if isinstance(node, KernelNode)
        for nest in node.kernel.nests
        if isinstance(nest, CallNest)
    ]


def test_effects_of_all_kinds_are_a_chain_in_program_order():
    def f(x):
        debug.callback(print, x)
        debug.print("{}", x[0])
        host_call(FREE)
        debug.callback(print, x * 2)
        host_call(FREE, b"data")
        return x

    plan = lowered(f, X, device="cuda").plan
    kinds = [
        next(
            (n for n in ([node] if isinstance(node, HostNode) else node.kernel.nests)
             if isinstance(n, HostNode | PrintNest)),
            None,
        )
        for node in plan.graph.nodes
    ]  # fmt: skip
    effects = [position for position, kind in enumerate(kinds) if kind is not None]
    assert [type(kinds[position]) for position in effects] == [
        CallNest, PrintNest, HostNode, CallNest, HostNode
    ]  # fmt: skip
    assert set(pairwise(effects)) <= plan.graph.edges


def test_a_callback_computes_what_it_sends():
    (call,) = calls(lowered(lambda x: (debug.callback(print, x * 2 + 1), x)[1], X).plan)
    assert call.arguments[0].shape == (3,)
    assert not call.results


def test_an_answer_is_stored_where_the_program_returns_it():
    plan = lowered(lambda x: pure_callback(np.sin, VECTOR, x), X).plan
    (call,) = calls(plan)
    assert call.results == plan.outputs


def test_an_empty_answer_is_not_asked_for():
    plan = lowered(lambda x: pure_callback(np.sin, ArrayType(np.dtype(float), (0,)), x), X).plan
    assert calls(plan) == []


def test_a_function_is_listed_once_however_often_its_loop_is_unrolled():
    def f(x):
        return fori_loop(0, 3, lambda i, x: pure_callback(np.sin, VECTOR, x), x)

    plan = lowered(f, X, device="cuda").plan
    assert len(plan.callbacks) == 1
    assert "callback[0]: sin" in str(plan)


@pytest.mark.parametrize("device", ["host", "cuda"])
def test_loops_that_call_back_are_no_single_kernel(device):
    def step(i, x):
        debug.callback(print, i)
        return x + 1

    def asks(i, x):
        return pure_callback(np.sin, VECTOR, x)

    for body in (step, asks):
        plan = lowered(lambda x, b=body: fori_loop(0, 10_000, b, x), X, device=device).plan
        assert plan.node_counts["PersistentKernelNode"] == 0
        assert plan.node_counts["WhileNode"] == 1
        with pytest.raises(UnschedulableError, match="cannot be one_kernel: a callback inside"):
            lowered(
                lambda x, b=body: fori_loop(0, 9, b, x, schedule="one_kernel"), X, device=device
            )


def test_a_product_beside_a_callback_is_computed():
    def f(x):
        y = pure_callback(lambda x: np.outer(x, x), ArrayType(np.dtype(float), (3, 3)), x)
        return y @ x, y.sum()

    found = tracegraph.jit(f, device="host")(X)
    np.testing.assert_allclose(found[0], np.outer(X, X) @ X)
