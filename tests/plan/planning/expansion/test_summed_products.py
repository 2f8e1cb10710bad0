"""Sums over batches of products: which are one product, and what it gives."""

from __future__ import annotations

import numpy as np
import pytest

import tracegraph
from lowering.host.executable import HostExecutable
from lowering.plan.calls.matrix_product import MatrixProduct
from lowering.plan.nodes import KernelNode, LibraryNode, walk
from tests.helpers.compiled import plan_of

RNG = np.random.default_rng(4)


def normal(*shape, dtype="float64"):
    return RNG.normal(size=shape).astype(dtype)


def calls(plan):
    nodes = [node for node in walk(plan.graph) if isinstance(node, LibraryNode)]
    return [node.call for node in nodes if isinstance(node.call, MatrixProduct)]


def sizes(plan):
    return [(call.batch, call.m, call.n, call.k) for call in calls(plan)]


def of_shared_factor(w, x):
    return tracegraph.grad(lambda w: np.sum(np.sin(x @ w)))(w)


def of_shared_left_factor(w, x):
    return tracegraph.grad(lambda w: np.sum(np.sin(w @ x)))(w)


def of_lanes(w, x):
    derivative = tracegraph.grad(lambda w, x: np.sum(np.sin(x @ w)))
    return tracegraph.vmap(derivative, (None, 0))(w, x).mean(0)


def over_one_axis(x, y):
    return (x.swapaxes(-1, -2) @ y).sum(axis=1)


CASES = {
    "shared right factor": (
        of_shared_factor,
        (normal(70, 90), normal(6, 50, 70)),
        (1, 70, 90, 300),
    ),
    "shared left factor": (
        of_shared_left_factor,
        (normal(90, 80), normal(6, 80, 20)),
        (1, 90, 80, 120),
    ),
    "lanes": (of_lanes, (normal(70, 90), normal(6, 50, 70)), (1, 70, 90, 300)),
    "some axes": (over_one_axis, (normal(3, 8, 40, 60), normal(3, 8, 40, 70)), (3, 60, 70, 320)),
    "outer products": (
        lambda x, y: (x[:, :, None] @ y[:, None, :]).sum(0),
        (normal(500, 80), normal(500, 90)),
        (1, 80, 90, 500),
    ),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("device", ["host", "cuda"])
def test_they_are_one_product(name, device):
    function, operands, size = CASES[name]
    plan = plan_of(function, *operands, device=device)
    assert sizes(plan)[-1] == size
    (found,) = HostExecutable(plan, poison=True)(list(operands))
    np.testing.assert_allclose(found, function(*operands), rtol=1e-10, atol=1e-10)


def test_the_left_factor_of_a_derivative_is_not_copied():
    function, operands, _ = CASES["shared right factor"]
    plan = plan_of(function, *operands, choices={"operands": "in_place"})
    assert calls(plan)[-1].left.buffer.space == "input"


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: (x @ y).sum(axis=(0, 1)),
        lambda x, y: (x @ y).sum(axis=2),
        lambda x, y: [z := x @ y, z.sum(axis=0)],
    ],
    ids=["rows", "columns", "used otherwise"],
)
def test_others_stay_batches(function):
    x, y = normal(5, 70, 80), normal(5, 80, 90)
    plan = plan_of(function, x, y)
    assert sizes(plan) == [(5, 70, 90, 80)]


def test_long_products_of_few_results_stay_batches_if_they_would_be_copied():
    plan = plan_of(lambda x, y: (x @ y).sum(axis=0), normal(5, 50, 4000), normal(5, 4000, 50))
    assert sizes(plan) == [(5, 50, 50, 4000)]


def test_the_precision_stays():
    function, operands, _ = CASES["shared right factor"]
    with tracegraph.matmul_precision("tf32"):
        plan = plan_of(function, *(x.astype("float32") for x in operands))
    assert [call.precision for call in calls(plan)] == ["tf32", "tf32"]


RESHAPED = {
    "reshape": lambda x, y: (x.reshape(20, 30, 1, 70) @ y).reshape(20, 30, 90),
    "einsum": lambda x, y: np.einsum("abk,kn->abn", x, y),
    "lanes": lambda x, y: tracegraph.vmap(lambda x: x @ y)(x),
    "in a loop": lambda x, y: tracegraph.scan(
        lambda c, x: (c, (x.reshape(5, 6, 70) @ y).reshape(15, 2, 90)), 0, x
    )[1],
}


@pytest.mark.parametrize("name", RESHAPED)
def test_a_product_is_written_in_the_shape_that_is_returned(name):
    operands = normal(20, 30, 70), normal(70, 90)
    plan = plan_of(RESHAPED[name], *operands, choices={"operands": "in_place"})
    if name != "in a loop":
        assert not any(isinstance(node, KernelNode) for node in plan.graph.nodes)
        assert calls(plan)[0].target.buffer.space == "output"
    for each in (plan, plan_of(RESHAPED[name], *operands, device="host")):
        (found,) = HostExecutable(each, poison=True)(list(operands))
        expected = np.einsum("abk,kn->abn", *operands)
        np.testing.assert_allclose(found.reshape(expected.shape), expected, rtol=1e-10, atol=1e-12)


def test_a_reshaped_product_that_a_kernel_reads_as_well_is_copied():
    def both(x, y):
        z = x @ y
        return z.reshape(10, 6, 90), np.sin(z)

    operands = normal(60, 70), normal(70, 90)
    plan = plan_of(both, *operands)
    for found, expected in zip(
        HostExecutable(plan, poison=True)(list(operands)), both(*operands), strict=True
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)
