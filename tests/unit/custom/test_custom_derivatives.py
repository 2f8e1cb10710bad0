"""Derivatives that users give kernels, elementwise functions and reductions of theirs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracegraph
from tests.cases.custom_derivatives import (
    POINT,
    SIZE,
    Case,
    counted,
    damped,
    each_case,
    each_place,
    in_scan,
    log_sum,
    scalar,
    softplus,
)
from tracegraph import errors

TEXT = 'extern "C" __global__ void f(const double* x, double* y) { y[threadIdx.x] = x[0]; }'


def declared(reference: Any = lambda x: x, **given: Any) -> Any:
    options = {"source": TEXT, "entry": "f", "out": lambda x: x, "grid": 1, "block": 32, **given}
    return tracegraph.kernel(**options)(reference)


def differences(f: Any, x: Any, step: float = 1e-6) -> Any:
    """The gradient of a function of NumPy arrays by central differences."""
    moved = [step * unit for unit in np.eye(x.size)]
    return np.array([(f(x + d) - f(x - d)) / (2 * step) for d in moved])


# agreement


@each_case
def test_gradients_are_those_of_differences(case: Case) -> None:
    f = scalar(case.function)
    np.testing.assert_allclose(tracegraph.grad(f)(POINT), differences(f, POINT), rtol=1e-7)


@each_case
@each_place
def test_gradients_are_those_of_numpys_functions(case: Case, place: Any) -> None:
    f, plain = scalar(place(case.function)), scalar(place(case.plain))
    value, gradient = tracegraph.jit(tracegraph.value_and_grad(f), device="host")(POINT)
    np.testing.assert_allclose(value, plain(POINT), rtol=1e-13)
    np.testing.assert_allclose(gradient, tracegraph.grad(plain)(POINT), rtol=1e-12)


@each_case
@each_place
def test_forward_mode_agrees_with_reverse_mode(case: Case, place: Any) -> None:
    f, t = scalar(place(case.function)), np.cos(POINT)
    _, along = tracegraph.jvp(f, (POINT,), (t,))
    np.testing.assert_allclose(along, tracegraph.grad(f)(POINT) @ t, rtol=1e-12)


@each_case
def test_second_derivatives(case: Case) -> None:
    expected = tracegraph.hessian(scalar(case.plain))(POINT)
    found = tracegraph.jit(tracegraph.hessian(scalar(case.function)), device="host")(POINT)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)
    gradient = tracegraph.grad(scalar(case.function))
    twice = tracegraph.grad(lambda x: gradient(x) @ np.cos(POINT))(POINT)
    np.testing.assert_allclose(twice, expected @ np.cos(POINT), rtol=1e-10, atol=1e-12)


@each_case
def test_third_derivatives(case: Case) -> None:
    def third(f: Any) -> Any:
        g = tracegraph.grad(lambda s: scalar(f)(POINT * s))
        return tracegraph.grad(tracegraph.grad(g))(1.0)

    np.testing.assert_allclose(third(case.function), third(case.plain), rtol=1e-9)


@each_case
@each_place
def test_lanes_of_gradients(case: Case, place: Any) -> None:
    f = tracegraph.grad(scalar(place(case.function)))
    points = np.stack([POINT, POINT[::-1], 0.5 * POINT + 0.03])
    found = tracegraph.jit(tracegraph.vmap(f), device="host")(points)
    np.testing.assert_allclose(found, np.stack([f(x) for x in points]), rtol=1e-12)


@each_case
def test_gradients_of_lanes(case: Case) -> None:
    f = scalar(case.function)
    points = np.stack([POINT, POINT[::-1]])
    found = tracegraph.grad(lambda xs: tracegraph.vmap(f)(xs).sum())(points)
    expected = np.stack([tracegraph.grad(f)(x) for x in points])
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("axis", [None, 0, 1, (0, 1), (1, -2), ()])
@pytest.mark.parametrize("keepdims", [False, True])
def test_every_axis_of_a_reduction(axis: Any, keepdims: bool) -> None:
    x = np.arange(12.0).reshape(3, 4) / 10

    def squares(fold: Any, over: Any) -> Any:
        return lambda x: (fold(x, axis=over, keepdims=keepdims) ** 2).sum()

    expected = tracegraph.grad(squares(np.logaddexp.reduce, (0, 1) if axis is None else axis))(x)
    np.testing.assert_allclose(tracegraph.grad(squares(log_sum, axis))(x), expected, rtol=1e-12)


def test_a_reduction_of_no_elements_has_the_derivative_zero() -> None:
    gradient = tracegraph.grad(lambda x: log_sum(x[:, :0], axis=1).clip(-1).sum())(np.ones((2, 3)))
    np.testing.assert_array_equal(gradient, np.zeros((2, 3)))


def test_derivatives_have_the_dtype_of_the_values() -> None:
    for dtype in (np.float16, np.float32, np.float64):
        gradient = tracegraph.grad(lambda x: (softplus(x) + log_sum(x)).sum())(np.ones(3, dtype))
        assert gradient.dtype == dtype


def test_a_complex_kernel() -> None:
    kernel = declared(lambda z: z * z * z, derivative="reference")
    z = POINT + 0.5j
    gradient = tracegraph.grad(lambda z: kernel(z).sum(), holomorphic=True)(z)
    np.testing.assert_allclose(gradient, 3 * z * z, rtol=1e-14)


# what is computed


def test_the_value_stays_the_kernels() -> None:
    wrong = declared(lambda x: x, derivative=lambda primals, tangents: 5 * tangents[0])
    value, gradient = tracegraph.value_and_grad(lambda x: wrong(x).sum())(POINT)
    assert value == POINT.sum()
    np.testing.assert_array_equal(gradient, np.full(SIZE, 5.0))
    f = tracegraph.value_and_grad(lambda x: (damped(x, x, 0.5) ** 2).sum())
    lowered = tracegraph.jit(f, device="cuda").lower(POINT)
    assert [node.kind for node in lowered.nodes].count("custom kernel") == 1


def test_a_gradient_alone_runs_no_kernel_whose_value_it_does_not_need() -> None:
    lowered = tracegraph.jit(
        tracegraph.grad(lambda x: damped(x, x, 0.5).sum()), device="cuda"
    ).lower(POINT)
    assert "custom kernel" not in {node.kind for node in lowered.nodes}


def test_a_rule_that_calls_the_kernel_on_the_same_values_runs_it_once() -> None:
    def rule(primals: Any, tangents: Any) -> Any:
        return kernel(*primals) * tangents[0]

    kernel = declared(lambda x: np.exp(x), derivative=rule)
    f = tracegraph.jit(tracegraph.value_and_grad(lambda x: kernel(x).sum()), device="cuda")
    kinds = [node.kind for node in f.lower(POINT).nodes]
    assert kinds.count("custom kernel") == 1


def test_none_is_a_tangent_of_zero() -> None:
    kernel = declared(lambda x: (x, 2 * x), out=lambda x: (x, x), derivative=lambda p, t: None)
    f = scalar(lambda x: kernel(x)[0] + kernel(x)[1] + x)
    np.testing.assert_array_equal(tracegraph.grad(f)(POINT), np.arange(1.0, SIZE + 1))
    second = declared(
        lambda x: (x, 2 * x), out=lambda x: (x, x), derivative=lambda p, t: (None, 2 * t[0])
    )
    f = scalar(in_scan(lambda x: second(x)[0] + second(x)[1]))
    g = scalar(in_scan(lambda x: tracegraph.stop_gradient(x) + 2 * x))
    np.testing.assert_allclose(tracegraph.grad(f)(POINT), tracegraph.grad(g)(POINT), rtol=1e-14)


def test_rules_in_checkpoints_and_transposes() -> None:
    f = scalar(in_scan(tracegraph.checkpoint(lambda x: damped(x, x, 0.5))))
    g = scalar(in_scan(lambda x: np.exp(-0.5 * x) * np.sin(x)))
    np.testing.assert_allclose(tracegraph.grad(f)(POINT), tracegraph.grad(g)(POINT), rtol=1e-13)
    flipped = declared(lambda x: 3 * x[::-1], derivative="reference")
    np.testing.assert_allclose(
        tracegraph.linear_transpose(flipped, POINT)(POINT), [3 * POINT[::-1]]
    )
    with pytest.raises(errors.NonlinearError, match="custom_kernel is not linear"):
        tracegraph.linear_transpose(lambda x: damped(x, x, 0.5), POINT)(POINT)


def test_integers_have_no_tangents() -> None:
    def f(x: Any) -> Any:
        return counted(x, np.int32(2))

    _, (dy, dlarge, dsum) = tracegraph.jvp(f, (POINT,), (np.ones(SIZE),))
    np.testing.assert_allclose(dy, 4 * POINT)
    assert dlarge is None
    assert float(dsum) == pytest.approx(2 * POINT.sum())
    counts = declared(lambda x: (x > 0.5).astype(np.int64), out=lambda x: x.with_dtype("int64"))
    gradient = tracegraph.grad(lambda x: (counts(x) * x).sum())(POINT)
    np.testing.assert_array_equal(gradient, POINT > 0.5)


def test_forward_mode_takes_a_rule_that_applies_the_kernel_to_tangents() -> None:
    doubled = declared(lambda x: 2 * x, derivative=lambda primals, tangents: doubled(*tangents))
    _, t = tracegraph.jvp(doubled, (POINT,), (POINT,))
    np.testing.assert_array_equal(t, 2 * POINT)
    with pytest.raises(errors.CustomRuleError, match="calls it on tangents, which reverse mode"):
        tracegraph.grad(lambda x: doubled(x).sum())(POINT)
    with pytest.raises(errors.CustomRuleError, match="custom_vjp"):  # nothing is left behind
        tracegraph.grad(lambda x: doubled(x).sum())(POINT)


@pytest.mark.parametrize(
    "weights",
    [
        np.arange(1.0, SIZE + 1),
        np.full(SIZE, 0.5),
        np.array([0.0, -0.0, 2, 3, 4, 5]),
        np.arange(SIZE, dtype=np.int16),
        np.array([True, False] * (SIZE // 2)),
        np.float32(np.arange(1.0, SIZE + 1)),
        tracegraph.asarray(np.arange(1.0, SIZE + 1)),
    ],
)
@pytest.mark.parametrize("derivative", [tracegraph.grad, tracegraph.jacfwd, tracegraph.hessian])
def test_arrays_around_a_reference(weights: Any, derivative: Any) -> None:
    weighted = declared(lambda x: weights * x * x, derivative="reference")
    rule = declared(lambda x: weights * x * x, derivative=lambda p, t: 2 * weights * p[0] * t[0])
    plain = np.asarray(weights)
    for place in (lambda f: f, in_scan):
        f, g = scalar(place(weighted)), scalar(place(rule))
        expected = derivative(scalar(place(lambda x: plain * x * x)))(POINT)
        for found in (derivative(f)(POINT), tracegraph.jit(derivative(g), device="host")(POINT)):
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("derivative", [tracegraph.grad, tracegraph.jacfwd])
def test_large_arrays_around_a_rule_in_a_loop(derivative: Any) -> None:
    def gradient(slopes: Any) -> Any:
        kernel = declared(lambda x: x, derivative=lambda p, t: slopes * t[0])
        total_of = lambda x: tracegraph.fori_loop(0, 2, lambda i, x: kernel(x), x).sum()  # noqa: E731
        return derivative(total_of)(np.ones(100))

    np.testing.assert_array_equal(gradient(np.full(100, 3.0)), np.full(100, 9.0))
    with pytest.raises(errors.CustomRuleError, match=r"uses f64\[100\], which is none of its"):
        gradient(np.arange(100.0))


def test_an_empty_array_around_a_rule_in_a_loop() -> None:
    kernel = declared(lambda x: x, derivative=lambda p, t: np.concatenate([np.zeros(0), t[0]]))
    expected = tracegraph.grad(scalar(in_scan(lambda x: x)))(POINT)
    np.testing.assert_allclose(tracegraph.grad(scalar(in_scan(kernel)))(POINT), expected)


def test_a_traced_value_around_a_rule_in_a_loop() -> None:
    def f(w: Any) -> Any:
        kernel = declared(lambda x: x, derivative=lambda p, t: w * t[0])
        g = lambda x: tracegraph.fori_loop(0, 2, lambda i, x: kernel(x), x).sum()  # noqa: E731
        return tracegraph.grad(g)(POINT)

    with pytest.raises(errors.CustomRuleError, match=r"uses ~f64\[\], which is none of its"):
        tracegraph.jit(f, device="host")(2.0)


def test_a_captured_call_has_the_derivative_of_its_host_function() -> None:
    call = tracegraph.capture(
        lambda stream, x, y: None, out=lambda x: x, host=np.sin, derivative="reference"
    )
    np.testing.assert_allclose(tracegraph.grad(lambda x: call(x).sum())(POINT), np.cos(POINT))
    second = tracegraph.capture(
        lambda stream, x, y: None,
        out=lambda x: x,
        host=np.sin,
        derivative=lambda primals, tangents: np.cos(primals[0]) * tangents[0],
    )
    np.testing.assert_allclose(tracegraph.grad(lambda x: second(x).sum())(POINT), np.cos(POINT))


# misuse


def total(kernel: Any) -> Any:
    return tracegraph.grad(lambda x: kernel(x).sum())


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (declared(), "its NumPy reference"),
        (
            tracegraph.capture(lambda s, x, y: None, out=lambda x: x, host=lambda x: x),
            "its host= function",
        ),
        (tracegraph.elementwise(lambda x: x, cuda="{0}"), "its NumPy reference"),
        (
            tracegraph.reduction(np.maximum, cuda="{0}", identity=0),
            "the NumPy function that combines",
        ),
        (
            tracegraph.reduction(np.maximum, cuda="{0}", identity=0).accumulate,
            "the NumPy function that combines",
        ),
    ],
)
def test_without_one_the_error_names_the_option(call: Any, named: str) -> None:
    with pytest.raises(errors.DerivativeError, match="was declared without derivative=") as caught:
        total(call)(POINT)
    assert f'derivative="reference", which differentiates {named}' in str(caught.value)
    assert "at test_custom_derivatives.py:" in str(caught.value)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (lambda p, t: (p[0], t[0]), "must return the tangent of its output, not a tuple of 2"),
        (lambda p, t: t[0][:2], r"returned f64\[2\] for a value of type f64\[6\]"),
        (lambda p, t: t[0] * 1j, r"returned c128\[6\] for a value of type f64\[6\]"),
        (lambda p, t: "t", "returned 't' .* for a value of type"),
        (lambda p, t: t[0] ** 2, "must be linear in the tangents.*square is not, at test_custom_"),
        (lambda p, t: (tracegraph.debug.print("t"), t[0])[1], "must have no effects"),
    ],
)
def test_rules_that_do_not_fit(given: Any, problem: str) -> None:
    with pytest.raises(errors.CustomRuleError, match=problem):
        total(declared(derivative=given))(POINT)


def test_a_rule_that_captures_what_is_differentiated() -> None:
    def f(x: Any) -> Any:
        weight = x[0] * 2
        kernel = declared(derivative=lambda p, t: weight * t[0])
        return kernel(x).sum()

    with pytest.raises(errors.CustomRuleError, match="uses a value of the function that is diff"):
        tracegraph.grad(f)(POINT)


def test_a_rule_of_one_output_in_a_tuple() -> None:
    kernel = declared(
        lambda x: (x * x,), out=lambda x: (x,), derivative=lambda p, t: (2 * p[0] * t[0],)
    )
    np.testing.assert_allclose(total(lambda x: kernel(x)[0])(POINT), 2 * POINT)


def test_a_rule_of_several_outputs_returns_a_tuple() -> None:
    kernel = declared(lambda x: (x, x), out=lambda x: (x, x), derivative=lambda p, t: t[0])
    with pytest.raises(
        errors.CustomRuleError, match="must return a tuple with a tangent for each output, 2 in all"
    ):
        total(lambda x: kernel(x)[0])(POINT)


def test_a_reference_that_cannot_be_traced() -> None:
    kernel = declared(lambda x: x if x[0] > 0 else -x, derivative="reference")
    with pytest.raises(errors.TracerBoolError) as caught:
        total(kernel)(POINT)
    assert "the derivative of kernel" in "".join(caught.value.__notes__)


def test_a_reference_that_returns_another_type() -> None:
    kernel = declared(lambda x: x.astype("f4"), derivative="reference")
    with pytest.raises(errors.KernelResultError, match=r"declared f64\[6\], returned f32\[6\]"):
        tracegraph.jit(total(kernel), device="cuda").lower(POINT)


@pytest.mark.parametrize(
    "make",
    [
        lambda: declared(derivative="jvp"),
        lambda: declared(derivative=(1, 1)),
        lambda: declared(derivative=np.zeros(2)),
        lambda: declared(derivative=np.array("reference")),
        lambda: tracegraph.reduction(np.maximum, cuda="{0}", identity=0, derivative=1),
        lambda: tracegraph.elementwise(lambda x: x, cuda="{0}", derivative="jvp"),
        lambda: tracegraph.elementwise(lambda x: x, cuda="{0}", derivative=np.zeros(2)),
        lambda: tracegraph.elementwise(lambda x: x, cuda="{0}", derivative=True),
        lambda: tracegraph.capture(lambda s, x, y: None, out=lambda x: x, derivative="jvp"),
    ],
)
def test_what_is_no_derivative(make: Any) -> None:
    with pytest.raises(errors.CustomKernelError, match=r"derivative must be .*, not "):
        make()


@pytest.mark.parametrize(
    ("make", "parameters"),
    [
        (lambda: declared(derivative=lambda t: t), "primals, tangents"),
        (
            lambda: tracegraph.reduction(
                np.maximum, cuda="{0}", identity=0, derivative=lambda p, t: t[0]
            ),
            "primals, tangents, axis",
        ),
        (
            lambda: tracegraph.capture(
                lambda s, x, y: None, out=lambda x: x, derivative=lambda p: p
            ),
            "primals, tangents",
        ),
    ],
)
def test_a_rule_that_takes_other_arguments(make: Any, parameters: str) -> None:
    with pytest.raises(errors.ParametersError, match=rf"is called with \({parameters}\)"):
        make()


def test_a_captured_call_without_a_reference() -> None:
    with pytest.raises(errors.CustomKernelError, match="give it as host="):
        tracegraph.capture(lambda s, x, y: None, out=lambda x: x, derivative="reference")
