"""An op is one record: made outside of the packages, it runs and is transformed as ours are."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracegraph
import tracegraph.numpy as tnp
from lowering.plan.nodes import KernelNode
from tests.helpers.agreement import check, check_on
from tests.helpers.gradients import check_gradient, check_second
from tracegraph.arrays.eager import apply
from tracegraph.ir import op as registry
from tracegraph.ir.op import Op
from tracegraph.numpy.ufuncs import new_ufunc
from tracegraph.ops.elementwise import texts, ufunc_op

DOCS = Path(__file__).parents[2] / "docs" / "extending.md"
X = np.linspace(-3.0, 3.0, 1000)


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ops that a test registers are gone after it."""
    monkeypatch.setattr(registry, "_REGISTRY", dict(registry._REGISTRY))


def sigmoid() -> Op:
    """No ufunc of NumPy: it has the dtypes of one."""
    return ufunc_op(
        np.cbrt,
        "1 / (1 + exp(-x)).",
        texts(f="(1 / (1 + exp(-{0})))"),
        name="sigmoid",
        reference=lambda x: 1 / (1 + np.exp(-x)),
        cost=8,
    )


def fabs() -> Op:
    """A ufunc of NumPy."""
    return ufunc_op(np.fabs, "The absolute value, in floating point.", texts(f="fabs({0})"))


OPS = pytest.mark.parametrize(
    ("new", "x"), [(sigmoid, X), (fabs, np.arange(-50.0, 50))], ids=["sigmoid", "fabs"]
)


@OPS
def test_it_is_found_by_name_and_its_samples_conform(new: Callable[[], Op], x: Any) -> None:
    op = new()
    assert registry.get(op.name) is op
    assert op in registry.all_ops()
    for sample in op.samples():
        check(op, sample, lambda op, operands, attrs: apply(op, *operands, **attrs))
    check_on(op, "host")


@OPS
def test_it_runs_at_once_and_compiled(new: Callable[[], Op], x: Any) -> None:
    op = new()
    expected = op.reference(x)
    eager = apply(op, x)
    assert isinstance(eager, np.ndarray)
    np.testing.assert_array_equal(eager, expected)
    of_array = apply(op, tracegraph.asarray(x))
    np.testing.assert_array_equal(np.asarray(of_array), expected)
    jitted = tracegraph.jit(lambda x: apply(op, x), device="host")
    np.testing.assert_array_equal(np.asarray(jitted(x)), expected)


@OPS
def test_it_is_fused_with_its_neighbours(new: Callable[[], Op], x: Any) -> None:
    op = new()
    lowered = tracegraph.jit(lambda x: apply(op, x + 1).sum(axis=0) * 2, device="cuda").lower(x)
    (node,) = lowered.nodes
    assert isinstance(node, KernelNode)
    text = {"sigmoid": "(1 / (1 + exp(-v", "fabs": "fabs(v"}
    assert text[op.name] in lowered.source


def test_a_ufunc_of_its_name_traces_numpys_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    fabs()
    function = new_ufunc("fabs", "[0, 5, -7]", "array([0., 5., 7.])")
    monkeypatch.setattr(tnp, "fabs", function)
    jitted = tracegraph.jit(lambda x: np.fabs(x) + 1, device="host")
    assert "fabs" in str(jitted.trace(np.array([0, 5, -7])).program)
    np.testing.assert_array_equal(np.asarray(jitted(np.array([0, 5, -7]))), [1, 6, 8])
    assert "Dtype:" in (function.__doc__ or "")


def test_a_name_is_given_once() -> None:
    sigmoid()
    with pytest.raises(ValueError, match="'sigmoid' is registered already"):
        sigmoid()


def test_dtypes_are_those_of_the_ufunc() -> None:
    op = sigmoid()
    for dtype in (np.bool_, np.int8, np.int64, np.float16, np.float32):
        x = np.ones(3, dtype)
        assert apply(op, x).dtype == np.cbrt(x).dtype
    with pytest.raises(TypeError, match=r"sigmoid is not defined for c128\[3\]"):
        tracegraph.jit(lambda x: apply(op, x), device="host")(np.ones(3, complex))


# rules of transforms


def mirror() -> Op:
    """The op of docs/extending.md that has a rule for derivatives and one for lanes."""
    text = DOCS.read_text("utf-8").partition("## Rules for transforms")[2]
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)[:1]
    names: dict[str, Any] = {"np": np, "apply": apply}
    exec(compile(code.partition("def weighted")[0], "rules.py", "exec"), names)
    return names["mirror"]


def mirrored(op: Op, x: Any) -> Any:
    return (apply(op, x**2) * np.arange(1.0, 4)).sum()


def test_an_op_with_rules_conforms() -> None:
    op = mirror()
    for sample in op.samples():
        check(op, sample, lambda op, operands, attrs: apply(op, *operands, **attrs))
    check_on(op, "host")


def test_its_derivative_holds_in_both_modes_and_of_second_order() -> None:
    op = mirror()
    x = np.array([0.5, -1.0, 2.0])
    gradient = check_gradient(lambda x: mirrored(op, x), x)
    np.testing.assert_allclose(gradient, 2 * x * [3.0, 2.0, 1.0])
    check_second(lambda x: mirrored(op, x), x)


def test_its_lanes_are_those_of_single_calls() -> None:
    op = mirror()
    xs = np.arange(12.0).reshape(4, 3)
    for function in (lambda x: mirrored(op, x), tracegraph.grad(lambda x: mirrored(op, x))):
        expected = np.stack([function(x) for x in xs])
        np.testing.assert_array_equal(tracegraph.vmap(function)(xs), expected)
        jitted = tracegraph.jit(tracegraph.vmap(function), device="host")
        np.testing.assert_array_equal(np.asarray(jitted(xs)), expected)


def test_it_is_fused_on_a_gpu_with_its_neighbours() -> None:
    op = mirror()
    lowered = tracegraph.jit(lambda x: apply(op, x + 1) * 2, device="cuda").lower(np.ones((8, 3)))
    assert [type(node) for node in lowered.plan.graph.nodes] == [KernelNode]
    assert "map [8, 3]" in str(lowered.plan)


# kernels


def test_a_kernel_of_a_users_own_is_a_node_of_the_graph() -> None:
    """`tracegraph.kernel`, with rules given as functions: no record, and nothing registered."""
    before = dict(registry._REGISTRY)

    @tracegraph.kernel(
        source="""extern "C" __global__ void twice(const double* x, long long n, double* y) {
             long long i = blockIdx.x * 256LL + threadIdx.x;
             if (i < n) y[i] = 2 * x[i];
           }""",
        out=lambda x, n: x,
        grid=lambda x, n: -(-x.size // 256),
        block=256,
        scalars={"n": np.int64},
    )
    def twice(x: Any, n: Any) -> Any:
        return 2 * x

    run = tracegraph.jit(lambda x: twice(x + 1, x.size), device="host")
    np.testing.assert_array_equal(np.asarray(run(np.arange(3.0))), [2.0, 4.0, 6.0])
    plan = tracegraph.jit(lambda x: twice(x + 1, x.size), device="cuda").lower(np.ones(3)).plan
    assert "custom kernel" in [node.kind for node in plan.graph.nodes]
    assert before == registry._REGISTRY
