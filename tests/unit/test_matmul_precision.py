"""Precision of products: what is recorded in blocks, what transforms keep, and what it computes."""

from __future__ import annotations

import numpy as np
import pytest

import tracegraph
import tracegraph.numpy as tnp
from tests.helpers.traced import trace
from tracegraph.ir.program import walk
from tracegraph.passes import optimize

X = np.random.default_rng(1).normal(size=(40, 60)).astype(np.float32)
Y = np.random.default_rng(2).normal(size=(60, 50)).astype(np.float32)


def precisions(program):
    found = [eqn.attrs.get("precision") for eqn in walk(program.body) if eqn.op.name == "matmul"]
    assert found
    return found


FORMS = {
    "matmul": lambda x, y: x @ y,
    "dot": np.dot,
    "tensordot": lambda x, y: np.tensordot(x, y, 1),
    "einsum": lambda x, y: np.einsum("ij,jk->ki", x, y),
    "linalg.multi_dot": lambda x, y: np.linalg.multi_dot([x, y, y.T]),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("precision", ["tf32", "bf16x3"])
def test_products_that_are_traced_inside_have_it(form, precision):
    with tracegraph.matmul_precision(precision):
        program = trace(FORMS[form], X, Y)
    assert set(precisions(program)) == set(precisions(optimize(program))) == {precision}
    assert set(precisions(trace(FORMS[form], X, Y))) == {None}


@pytest.mark.parametrize("dtype", ["float16", "float64", "complex64", "complex128", "int32"])
def test_only_dtypes_that_have_it_are_recorded_with_it(dtype):
    x = np.ones((3, 3), dtype)
    for precision in ("float32", "tf32", "bf16x3"):
        with tracegraph.matmul_precision(precision):
            found = precisions(trace(lambda x: x @ x, x))
        assert found == ["tf32" if (dtype, precision) == ("complex64", "tf32") else None]


def test_derivatives_and_batches_keep_it():
    def loss(x, y):
        with tracegraph.matmul_precision("tf32"):
            return ((x @ y) ** 2).sum()

    assert precisions(trace(tracegraph.grad(loss, argnums=(0, 1)), X, Y)) == ["tf32"] * 3
    assert (
        precisions(trace(lambda x, y: tracegraph.jvp(loss, (x, y), (x, y)), X, Y)) == ["tf32"] * 3
    )
    lanes = np.stack([X, X])
    batched = tracegraph.vmap(tracegraph.grad(loss), in_axes=(0, None))
    assert precisions(trace(batched, lanes, Y)) == ["tf32"] * 2


def test_a_block_inside_a_loop_is_of_what_it_traces():
    def run(x, y):
        def step(i, x):
            with tracegraph.matmul_precision("bf16x3"):
                return x @ y @ y.T

        return tracegraph.fori_loop(0, 3, step, x) @ y

    assert precisions(trace(run, X, Y)) == ["bf16x3", "bf16x3", None]


@pytest.mark.parametrize("name", ["matmul", "dot", "tensordot", "einsum"])
def test_functions_take_it_as_an_argument(name):
    function = getattr(tnp, name)
    operands = ("ij,jk->ik",) if name == "einsum" else ()
    options = {"axes": 1} if name == "tensordot" else {}

    def product(x, y):
        return function(*operands, x, y, precision="tf32", **options)

    assert precisions(trace(product, X, Y)) == ["tf32"]
    np.testing.assert_allclose(product(X, Y), X @ Y, rtol=1e-5, atol=1e-5)
    with tracegraph.matmul_precision("bf16x3"):
        assert precisions(trace(product, X, Y)) == ["tf32"]


@pytest.mark.parametrize("precision", ["highest", "TF32", None, 32])
def test_an_unknown_precision_is_refused(precision):
    with (
        pytest.raises(ValueError, match="write one of 'float32', 'tf32', 'bf16x3'"),
        tracegraph.matmul_precision(precision),
    ):
        pass
    with pytest.raises(ValueError, match="got 'half'"):
        tnp.matmul(X, Y, precision="half")


def test_programs_of_each_precision_are_apart():
    product = tracegraph.jit(lambda x, y: x @ y, device="host")
    for precision in ("float32", "tf32", "float32"):
        with tracegraph.matmul_precision(precision):
            assert (product(X, Y) == X @ Y).all()
    assert product.stats()["builds"] == 2
    assert product.stats()["retraces"] == ("matmul_precision: float32 -> tf32",)


def test_factorizations_compute_in_the_precision_of_their_operands():
    matrix = X @ X.T + np.eye(40, dtype=np.float32)
    with tracegraph.matmul_precision("tf32"):
        solve = tracegraph.jit(np.linalg.solve, device="cuda").lower(matrix, X)
    assert "tf32" not in str(solve.plan)
    assert "bf16" not in str(solve.plan)
