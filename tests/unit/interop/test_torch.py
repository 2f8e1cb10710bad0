"""`tracegraph.torch.wrap`: values and derivatives of any order, torch.func and torch.compile."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pytest

import tracegraph
from tests.helpers.threads import collect_garbage
from tracegraph import errors

torch: Any = pytest.importorskip("torch")

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # PyTorch's own


def of_torch(x: Any, w: Any) -> Any:
    return (torch.tanh(x @ w) ** 2).sum()


wrapped = tracegraph.torch.wrap(lambda x, w: (np.tanh(x @ w) ** 2).sum())


def inputs(*, grad: bool = True) -> tuple[Any, Any]:
    torch.manual_seed(0)
    shapes = ((2, 3), (3, 2))
    x, w = (torch.randn(s, dtype=torch.float64, requires_grad=grad) for s in shapes)
    return x, w


def test_derivatives_of_two_orders_are_those_of_the_function() -> None:
    assert torch.autograd.gradcheck(wrapped, inputs())
    assert torch.autograd.gradgradcheck(wrapped, inputs())
    z = torch.randn(3, dtype=torch.complex128, requires_grad=True)
    assert torch.autograd.gradcheck(tracegraph.torch.wrap(lambda z: z * z * np.conj(z)), (z,))


@pytest.mark.parametrize(
    ("body", "kept"),
    [
        (lambda x, w: (np.tanh(x @ w) ** 2).sum(), [(2, 2)]),  # the product
        (lambda x, w: np.exp(x @ w), []),  # the result is there
        (lambda x, w: np.sin(x) * np.exp(-x) + w.sum(), []),  # cheap to compute again
        (lambda x, w: (np.arange(3.0) * x * 2.5) @ w + 3, []),
        (lambda x, w: tracegraph.fori_loop(0, 5, lambda i, c: np.tanh(c @ (w @ x)), x), None),
        (lambda x, w: {"sum": x.sum() * w, "greatest": np.argmax(x)}["sum"], [()]),
    ],
)
def test_the_backward_pass_is_made_of_what_the_call_keeps(body: Any, kept: Any) -> None:
    f = tracegraph.torch.wrap(body)
    x, w = inputs()
    out = f(x, w)
    node = out.grad_fn
    first = [tuple(t.shape) for t in node.saved_tensors[2 : 2 + node.counts[1]]]
    assert node.layout.half is not None
    assert kept is None or first == kept
    ct = torch.randn(out.shape, dtype=out.dtype)
    found = torch.autograd.grad(out, (x, w), ct, retain_graph=True)
    assert not any("pullback" in key for key in node.function._derived if isinstance(key, tuple))
    again = torch.autograd.grad(out, (x, w), ct, create_graph=True)  # by running the body again
    torch.testing.assert_close(found, again)


def test_libraries_that_move_what_is_kept() -> None:
    from torch.utils.checkpoint import checkpoint

    f = tracegraph.torch.wrap(lambda x, s: np.sin(np.cumsum(x)) * s)
    x = torch.linspace(0, 1, 5, requires_grad=True)
    twice = lambda x: f(f(x, 2.0), 3)  # noqa: E731
    (expected,) = torch.autograd.grad(twice(x).sum(), x)
    repeated = checkpoint(twice, x, use_reentrant=False)
    torch.testing.assert_close(torch.autograd.grad(repeated.sum(), x)[0], expected)
    with torch.autograd.graph.save_on_cpu():
        found = twice(x).sum()
    torch.testing.assert_close(torch.autograd.grad(found, x)[0], expected)


def test_transformations_of_torch_func() -> None:
    x, w = inputs(grad=False)
    func = torch.func
    several = torch.stack([x, 2 * x])
    for transformed in (
        lambda f: func.grad(f)(x, w),
        lambda f: func.hessian(f)(x, w),
        lambda f: func.jvp(lambda x: f(x, w), (x,), (x,))[1],
        lambda f: func.vmap(f, (0, None))(several, w),
        lambda f: func.vmap(func.grad(f), (0, None))(several, w),
    ):
        torch.testing.assert_close(transformed(wrapped), transformed(of_torch))


def test_torch_compile_has_the_calls_in_its_graph() -> None:
    aot_autograd = import_module("torch._dynamo.backends.common").aot_autograd
    boxed = import_module("functorch.compile").make_boxed_func
    scaled = tracegraph.torch.wrap(lambda x, s: x * s)

    def step(f: Any, g: Any, x: Any, w: Any) -> Any:
        return f(torch.sin(x), w) * 2 + g(x, 3.0).sum()

    x, w = inputs()
    graphs: list[str] = []

    def compiler(module: Any, inputs: Any) -> Any:
        graphs.append(module.code)
        return boxed(module.forward)

    compiled = torch.compile(
        lambda x, w: step(wrapped, scaled, x, w),
        fullgraph=True,
        backend=aot_autograd(fw_compiler=compiler),
    )
    expected = step(of_torch, lambda x, s: x * s, x, w)
    found = compiled(x, w)
    torch.testing.assert_close(found, expected)
    gradients = torch.autograd.grad(expected, (x, w))
    torch.testing.assert_close(torch.autograd.grad(found, (x, w)), gradients)
    assert [text.count("keeping_call") > 0 for text in graphs] == [True, False]
    # What the compiled graph has found out about the function is not taken for an eager call's.
    found = step(wrapped, scaled, x, w)
    torch.testing.assert_close(torch.autograd.grad(found, (x, w)), gradients)


def test_the_operator_is_one_as_pytorch_has_them() -> None:
    call = import_module("tracegraph.torch.in_graph").call
    function = import_module("tracegraph.interop.flat_functions").FlatFunction(
        lambda x, w: (np.tanh(x @ w), x + 1)
    )
    torch.library.opcheck(call, (function.number, list(inputs())))
    keeping = import_module("tracegraph.torch.in_graph").keeping_call
    arguments = (function.number, [True, True], list(inputs()))
    torch.library.opcheck(keeping, arguments)
    first = lambda x, w: keeping(function.number, [True, True], [x, w])[:2]  # noqa: E731
    assert torch.autograd.gradcheck(first, inputs())
    assert torch.autograd.gradgradcheck(first, inputs())


def test_arguments_and_results_are_trees_of_any_dtype() -> None:
    def body(state: Any, k: Any, scale: float) -> Any:
        return {"x": state["x"] * scale, "k": k + 1, "half": state["half"] * 2}

    x = torch.ones(3, requires_grad=True)
    half = torch.ones(2, dtype=torch.bfloat16, requires_grad=True)
    found = tracegraph.torch.wrap(body)({"x": x, "half": half}, torch.arange(3), scale=2.5)
    (found["x"].sum() + found["half"].sum()).backward()
    assert not found["k"].requires_grad
    assert found["k"].tolist() == [1, 2, 3]
    assert x.grad.tolist() == [2.5] * 3
    assert (half.grad.dtype, half.grad.tolist()) == (torch.bfloat16, [2, 2])


def test_results_are_written_to_as_any_tensor() -> None:
    x = torch.arange(4.0)
    double = tracegraph.torch.wrap(lambda x: x * 2)
    y, z = double(x), double(x.view(2, 2).T)
    y += 1
    assert (x.tolist(), y.tolist(), z.tolist()) == (
        [0, 1, 2, 3],
        [1, 3, 5, 7],
        [[0, 4], [2, 6]],
    )


def test_tensors_are_arguments_of_jitted_functions() -> None:
    double = tracegraph.jit(lambda x: x * 2, device="host")
    for x in (
        torch.arange(3.0),
        torch.ones(2, 3).T,
        torch.ones(2, dtype=torch.bfloat16),
        torch.tensor([1 + 2j]).conj(),
    ):
        for _ in range(2):
            torch.testing.assert_close(torch.from_dlpack(double(x)), x * 2)
    assert double.stats()["traces"] == 4
    bits = tracegraph.asarray(torch.ones(2, 2, dtype=torch.bfloat16))
    torch.testing.assert_close(torch.from_dlpack(bits), torch.ones(2, 2, dtype=torch.bfloat16))
    with pytest.raises(errors.UnsupportedArgumentError, match="require gradient"):
        double(torch.ones(2, requires_grad=True))


def test_misuse_is_named() -> None:
    with pytest.raises(TypeError, match="wrap takes a function, got 3"):
        tracegraph.torch.wrap(3)
    with pytest.raises(errors.UnsupportedArgumentError, match="of type str"):
        wrapped(torch.ones(2, 2), "a")


def test_results_have_the_structure_of_their_own_program() -> None:
    def either(x: Any) -> Any:
        return {"row": x * 2} if x.ndim == 1 else {"rows": x * 3, "sum": x.sum()}

    f = tracegraph.torch.wrap(either)
    row, rows = (torch.ones(s, requires_grad=True) for s in (2, (2, 2)))
    for called in (f, torch.no_grad()(f)):
        for _ in range(2):
            assert list(called(row)) == ["row"]
            assert list(called(rows)) == ["rows", "sum"]
    total = f(row)["row"].sum() + f(rows)["rows"].sum()
    assert torch.autograd.grad(total, row)[0].tolist() == [2, 2]
    batched = torch.func.vmap(f)(torch.ones(3, 2))
    assert {k: tuple(x.shape) for k, x in batched.items()} == {"row": (3, 2)}
    assert torch.func.grad(lambda x: f(x)["rows"].sum())(torch.ones(2, 2)).tolist() == [[3, 3]] * 2
    several = tracegraph.torch.wrap(lambda x: list(x.T * x.shape[0]))
    compiled = torch.compile(several, backend="aot_eager", fullgraph=True)
    for shape in ((3, 2), (2, 3), (3, 2)):
        x = torch.ones(shape, requires_grad=True)
        found = compiled(x)
        assert [part.tolist() for part in found] == [[float(shape[0])] * shape[0]] * shape[1]
        assert (torch.autograd.grad(sum(found).sum(), x)[0] == shape[0]).all()


def test_what_is_known_of_a_function_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tracegraph.interop.flat_functions.MOST", 2)
    double = tracegraph.torch.wrap(lambda x: x * x)
    numbers = import_module("tracegraph.interop.flat_functions")._by_number
    sizes = []
    for size in (1, 2, 3, 4, 5, 6, 7):
        x = torch.ones(size, requires_grad=True)
        assert torch.autograd.grad(double(x).sum(), x)[0].tolist() == [2] * size
        collect_garbage()
        sizes.append(len(numbers))
    assert sizes[-1] <= sizes[1] + 1


def test_a_function_that_nobody_has_is_freed() -> None:
    double = tracegraph.torch.wrap(lambda x: x * 2)
    x = torch.ones(2, requires_grad=True)
    double(x).sum().backward()
    numbers = import_module("tracegraph.interop.flat_functions")._by_number
    collect_garbage()
    before = len(numbers)
    del double
    collect_garbage()
    assert len(numbers) < before


def test_an_argument_that_is_none_is_named_as_the_caller_does() -> None:
    def scaled(x: Any, factors: Any) -> Any:
        return x * factors[0]

    x = torch.ones(3)
    with pytest.raises(errors.UnsupportedArgumentError) as caught:
        tracegraph.torch.wrap(scaled)(x, ["two"])
    assert str(caught.value).startswith("argument factors[0] of test_an_argument")
    assert len(caught.traceback) <= 3  # wrap's own alone
