"""custom_jvp, custom_vjp, checkpoint, custom_linear_solve and custom_root."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracegraph
from tests.helpers.gradients import check_gradient, check_second
from tracegraph import (
    checkpoint,
    custom_jvp,
    custom_linear_solve,
    custom_root,
    custom_vjp,
    errors,
    fori_loop,
    grad,
    hessian,
    jacfwd,
    jvp,
    scan,
    while_loop,
)
from tracegraph.ir.program import walk

X = np.array([0.3, -0.8, 0.6])


@custom_jvp
def tripled(x: Any, y: Any) -> Any:
    """The rule says 3·sin where the derivative is cos, so that its use shows."""
    return np.sin(x) * y


@tripled.defjvp
def tripled_rule(primals: Any, tangents: Any) -> Any:
    (x, y), (tx, ty) = primals, tangents
    return tripled(x, y), 3 * np.sin(x) * y * tx + np.sin(x) * ty


def power(x: Any, n: int) -> Any:
    return x**n


counted_power = custom_vjp(power)
counted_power.defvjp(
    lambda x, n: (x**n, (x, n)),
    lambda residuals, ct: (10 * ct * residuals[1] * residuals[0] ** (residuals[1] - 1), None),
)


def test_the_rule_of_a_custom_jvp_is_used_in_both_modes() -> None:
    x, y = 0.4, 2.0
    expected = 3 * np.sin(x) * y, np.sin(x)
    np.testing.assert_allclose(grad(tripled, (0, 1))(x, y), expected)
    np.testing.assert_allclose(jvp(tripled, (x, y), (1.0, None))[1], expected[0])
    np.testing.assert_allclose(tracegraph.jit(grad(tripled), device="host")(x, y), expected[0])
    np.testing.assert_allclose(grad(grad(tripled))(x, y), 3 * np.cos(x) * y)
    assert tripled(x, y) == np.sin(x) * y
    assert tripled.__doc__ == tripled.fun.__doc__


def test_rules_work_in_loops_branches_and_other_rules() -> None:
    def function(x: Any) -> Any:
        return fori_loop(0, 3, lambda i, c: tripled(c, 0.5) + counted_power(c, 2) * 0.1, x)

    def by_hand(x: float) -> float:
        slope, c = 1.0, x
        for _ in range(3):
            slope *= 3 * np.sin(c) * 0.5 + 10 * 2 * c * 0.1
            c = np.sin(c) * 0.5 + c**2 * 0.1
        return slope

    np.testing.assert_allclose(grad(function)(0.7), by_hand(0.7))
    branch = grad(lambda x: tracegraph.cond(x > 0, lambda x: tripled(x, 2.0), lambda x: x, x))
    np.testing.assert_allclose(branch(0.7), 6 * np.sin(0.7))


def test_a_custom_vjp_is_transposed_forwards() -> None:
    assert counted_power(2.0, 3) == 8
    assert grad(counted_power)(2.0, 3) == 120
    assert jvp(lambda x: counted_power(x, 3), (2.0,), (1.0,))[1] == 120
    assert jacfwd(counted_power)(2.0, 3) == 120
    assert hessian(counted_power)(2.0, 3) == 120  # of 30 x²
    assert grad(grad(counted_power))(2.0, 3) == 120


def test_residuals_may_be_anything() -> None:
    @custom_vjp
    def shifted(x: Any, how: str) -> Any:
        return {"a": x + 1, "n": 3}

    shifted.defvjp(
        lambda x, how: ({"a": x + 1, "n": 3}, {"how": how, "x": x, "two": 2}),
        lambda r, ct: (ct["a"] * r["x"] * r["two"] * len(r["how"]), None),
    )
    found = grad(lambda x: shifted(x, "abc")["a"].sum())(X)
    np.testing.assert_array_equal(found, 6 * X)


def test_a_rule_that_is_not_linear_works_backwards_only() -> None:
    clipped = custom_vjp(lambda x: x)
    clipped.defvjp(lambda x: (x, None), lambda _, ct: (np.clip(ct, -1.0, 1.0),))
    assert grad(lambda x: 10 * clipped(x))(3.0) == 1
    for forwards in (lambda: jvp(clipped, (3.0,), (1.0,)), lambda: jacfwd(clipped)(3.0)):
        with pytest.raises(errors.CustomRuleError, match="is not linear in the cotangent"):
            forwards()


def test_rules_may_use_values_around_them() -> None:
    def function(x: Any) -> Any:
        scale = stopped = tracegraph.stop_gradient(x * 2)

        @custom_jvp
        def scaled(y: Any) -> Any:
            return y * scale

        @scaled.defjvp
        def rule(primals: Any, tangents: Any) -> Any:
            return scaled(*primals), tangents[0] * stopped * 5

        return scaled(x).sum()

    np.testing.assert_allclose(grad(function)(X), 10 * X)


def test_none_is_a_tangent_of_zero_and_keywords_are_positions() -> None:
    @custom_jvp
    def function(x: Any, *, y: Any = 2.0) -> Any:
        return x * y

    function.defjvp(lambda primals, tangents: (primals[0] * 2.0, None))
    assert grad(function)(3.0) == 0


class Layer:
    @custom_jvp
    def apply(self, x: Any) -> Any:
        return x * 2

    apply.defjvp(lambda primals, tangents: (primals[1] * 2, tangents[1] * 7))


def test_methods() -> None:
    assert grad(Layer().apply)(3.0) == 7


def wrong_rules() -> dict[str, tuple[Any, str]]:
    def of_jvp(rule: Any) -> Any:
        function = custom_jvp(lambda x: x * 1)
        if rule is not None:
            function.defjvp(rule)
        return lambda: grad(lambda x: function(x).sum())(X)

    def of_vjp(forward: Any, backward: Any) -> Any:
        function = custom_vjp(lambda x: x * 1)
        function.defvjp(forward, backward)
        return lambda: grad(lambda x: function(x).sum())(X)

    def captured(w: Any) -> Any:
        function = custom_jvp(lambda x: x * w)
        function.defjvp(lambda p, t: (function(*p), t[0]))
        return function(X).sum()

    def good(x: Any) -> Any:
        return x, None

    return {
        "none": (of_jvp(None), "has no rule: set it by defjvp"),
        "pair": (of_jvp(lambda p, t: p[0]), r"must return a pair \(result, tangent\)"),
        "structure": (of_jvp(lambda p, t: ((p[0],), t[0])), "must return a result of the struct"),
        "shape": (of_jvp(lambda p, t: (p[0], t[0][:2])), r"returned f64\[2\] for a value"),
        "tangent": (of_jvp(lambda p, t: (p[0], (t[0],))), "returned an instance of builtins.tuple"),
        "dtype": (of_jvp(lambda p, t: (p[0], t[0] * 1j)), r"returned c128\[3\] for a value"),
        "captured": (lambda: grad(captured)(X), "captures a value by which it is diff"),
        "forward": (of_vjp(lambda x: x, lambda r, ct: (ct,)), "must return a pair"),
        "backward": (of_vjp(good, lambda r, ct: ct), "must return a tuple of 1 cotangents"),
        "count": (of_vjp(good, lambda r, ct: (ct, ct)), "of 1 cotangents, .* not one of 2"),
        "square": (of_jvp(lambda p, t: (p[0], t[0] ** 2)), "linear in the tangents.*: square is"),
        "sign": (of_jvp(lambda p, t: (p[0], np.sign(t[0]))), "linear in the tangents.*: sign is"),
        "cotangent": (of_vjp(good, lambda r, ct: (ct[:1],)), r"returned f64\[1\] for a value"),
        "function": (lambda: custom_vjp(3), "takes a function"),  # type: ignore[arg-type]
    }


@pytest.mark.parametrize("name", wrong_rules())
def test_wrong_rules(name: str) -> None:
    function, text = wrong_rules()[name]
    with pytest.raises(errors.CustomRuleError, match=text):
        function()


def test_a_rule_must_have_no_effects_backwards() -> None:
    function = custom_vjp(lambda x: x * 1)

    def backward(residuals: Any, ct: Any) -> Any:
        tracegraph.debug.print("{}", ct)
        return (ct,)

    function.defvjp(lambda x: (x, None), backward)
    with pytest.raises(errors.CustomRuleError, match="must have no effects"):
        grad(lambda x: function(x).sum())(X)


def test_a_rule_may_be_linear_through_loops_and_branches_and_print() -> None:
    function = custom_jvp(lambda x: np.sin(x) ** 3)

    @function.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        (x,), (t,) = primals, tangents
        tracegraph.debug.print("{}", t)

        def step(_: Any, carry: Any) -> Any:
            y, dy = carry
            return y * np.sin(x), dy * np.sin(x) + y * np.cos(x) * t

        out, tangent = tracegraph.fori_loop(0, 3, step, (np.ones_like(x), 0 * t))
        return out, tracegraph.cond(x.sum() > 0, lambda t: t * 1, lambda t: t + 0, tangent)

    def loss(x: Any) -> Any:
        return function(x).sum()

    np.testing.assert_allclose(grad(loss)(X), 3 * np.sin(X) ** 2 * np.cos(X), 1e-12)


# checkpoint


def test_a_checkpoint_changes_no_derivative() -> None:
    inner = checkpoint(lambda x, n: np.sin(np.exp(np.sin(x))) * n)

    def function(x: Any) -> Any:
        last, ys = scan(lambda c, t: (inner(c, 2) * t, c.sum()), x, np.arange(3.0))
        return last.sum() + ys.sum() + inner(x, n=3).sum()

    check_gradient(function, X)
    check_second(function, X)


def test_a_checkpoint_keeps_its_arguments_alone() -> None:
    def body(c: Any) -> Any:
        return np.tanh(np.exp(np.sin(c)) * np.cos(np.cumsum(c)))

    def function(x: Any, step: Any) -> Any:
        return scan(lambda c, _: (step(c), None), x, length=10)[0].sum()

    def stacked_bytes(step: Any) -> int:
        program = tracegraph.jit(lambda x: grad(function)(x, step), device="host").trace(X)
        first = next(e for e in walk(program.optimized.body) if e.op.name == "scan")
        return sum(v.type.nbytes for v in first.outputs[first.attrs["carry"] :])

    assert stacked_bytes(checkpoint(body)) == 10 * X.nbytes < stacked_bytes(body)


def test_a_checkpoint_computes_again(capsys: pytest.CaptureFixture[str]) -> None:
    def loud(x: Any) -> Any:
        tracegraph.debug.print("run")
        return np.exp(np.exp(x))

    function = grad(lambda x: checkpoint(loud)(x).sum())
    program = tracegraph.jit(function, device="host").trace(X).optimized
    assert sum(e.op.name == "exp" for e in walk(program.body)) == 4
    function(X)
    assert capsys.readouterr().out == "run\n"  # effects are not repeated


# implicit derivatives


def iterated(matvec: Any, b: Any) -> Any:
    """Richardson's iteration, for operators whose eigenvalues are near 2."""
    return while_loop(
        lambda x: np.abs(b - matvec(x)).max() > 1e-14,
        lambda x: x + 0.4 * (b - matvec(x)),
        b * 0,
        max_steps=1000,
    )


A = 2 * np.eye(3) + 0.3 * np.random.default_rng(3).normal(size=(3, 3))


def solution(a: Any, b: Any) -> Any:
    return custom_linear_solve(lambda x: a @ x, b, iterated, iterated)


def test_linear_solve_by_its_right_hand_side() -> None:
    np.testing.assert_allclose(solution(A, X), np.linalg.solve(A, X), atol=1e-13)
    np.testing.assert_allclose(
        grad(lambda b: solution(A, b).sum())(X), np.linalg.solve(A.T, np.ones(3)), atol=1e-12
    )
    check_gradient(lambda b: (solution(A, b) ** 3).sum(), X)
    np.testing.assert_allclose(jacfwd(lambda b: solution(A, b))(X), np.linalg.inv(A), atol=1e-12)
    check_second(lambda b: (solution(A, b) ** 3).sum(), X)


def test_linear_solve_by_what_the_operator_captures() -> None:
    def function(w: Any) -> Any:
        return (solution(A + np.outer(w, w) * 0.1, w + 1) ** 2).sum()

    check_gradient(function, X)
    check_second(function, X)


def test_a_symmetric_operator_needs_one_solver() -> None:
    symmetric = A + A.T

    def function(b: Any) -> Any:
        return custom_linear_solve(lambda x: symmetric @ x, b, half, symmetric=True).sum()

    def half(matvec: Any, b: Any) -> Any:
        return iterated(lambda x: matvec(x) / 2, b / 2)

    np.testing.assert_allclose(
        grad(function)(X), np.linalg.solve(symmetric, np.ones(3)), atol=1e-12
    )


def test_a_solver_that_is_linear_is_transposed() -> None:
    inverse = np.linalg.inv(A)

    def function(b: Any) -> Any:
        return custom_linear_solve(lambda x: A @ x, b, lambda _, b: inverse @ b).sum()

    np.testing.assert_allclose(grad(function)(X), inverse.T @ np.ones(3), atol=1e-12)
    with pytest.raises(errors.CustomRuleError, match="transpose_solve"):
        grad(lambda b: custom_linear_solve(lambda x: A @ x, b, iterated).sum())(X)


INVERSE = np.linalg.inv(A)
STOPPED = {
    "result": lambda matvec, b: tracegraph.stop_gradient(INVERSE @ b),
    "part": lambda matvec, b: INVERSE @ b / 2 + tracegraph.stop_gradient(INVERSE @ (b * 2)) / 4,
    "loop": lambda matvec, b: fori_loop(
        0, 99, lambda i, x: x + 0.4 * (b - matvec(tracegraph.stop_gradient(x * 1.0))), b * 0
    ),
    "branch": lambda matvec, b: tracegraph.cond(
        A[0, 0] > 0, lambda b: tracegraph.stop_gradient(b * 1.0), lambda b: b, INVERSE @ b
    ),
    "checkpoint": lambda matvec, b: checkpoint(lambda b: tracegraph.stop_gradient(b))(INVERSE @ b),
    "rounded": lambda matvec, b: np.round(INVERSE @ b * 1e9) / 1e9,
}


@pytest.mark.parametrize("name", STOPPED)
def test_a_solver_without_a_derivative_is_not_transposed(name: str) -> None:
    """Its derivative is zero, or lacks a part, which is not that of the solution."""
    stopped = STOPPED[name]
    for run in (grad, lambda f: tracegraph.jit(grad(f), device="host")):
        with pytest.raises(errors.CustomRuleError, match=r"(stop_gradient|rint|round) is not lin"):
            run(lambda b: custom_linear_solve(lambda x: A @ x, b, stopped).sum())(X)
    exact = np.linalg.solve(A.T, np.ones(3))
    found = grad(lambda b: custom_linear_solve(lambda x: A @ x, b, stopped, iterated).sum())(X)
    np.testing.assert_allclose(found, exact, atol=1e-12)
    forwards = jvp(lambda b: custom_linear_solve(lambda x: A @ x, b, stopped), (X,), (X,))[1]
    if name != "loop":
        np.testing.assert_allclose(forwards, stopped(None, X), atol=1e-12)


def test_the_solver_of_tangents_returns_a_tree_like_the_root() -> None:
    def root(a: Any) -> Any:
        return custom_root(lambda x: x - a, a, lambda f, x: a, lambda g, y: (y, y))

    with pytest.raises(errors.CustomRuleError, match=r"must return \* of f64\[\], got \(\*, \*\)"):
        grad(root)(2.0)


def test_aux_of_a_solver() -> None:
    def solve(matvec: Any, b: Any) -> Any:
        return b / 2, {"steps": 3}

    def function(b: Any) -> Any:
        x, aux = custom_linear_solve(lambda x: 2 * x, b, solve, symmetric=True, has_aux=True)
        return x.sum() + aux["steps"]

    np.testing.assert_array_equal(grad(function)(X), np.full(3, 0.5))
    assert function(X) == X.sum() / 2 + 3


def newton(f: Any, x: Any) -> Any:
    def step(x: Any) -> Any:
        return x - f(x) / jvp(f, (x,), (np.ones_like(x),))[1]

    return while_loop(lambda x: np.abs(f(x)).max() > 1e-13, step, x)


def square_root(a: Any) -> Any:
    return custom_root(lambda x: x * x - a, a + 1.0, newton, lambda g, y: y / g(np.ones_like(y)))


def test_roots_have_the_derivative_of_the_implicit_function() -> None:
    np.testing.assert_allclose(square_root(9.0), 3.0)
    for function, expected in (
        (grad(square_root), 1 / 6),
        (grad(grad(square_root)), -1 / 108),
        (grad(grad(grad(square_root))), 3 / 8 * 9**-2.5),
        (tracegraph.jit(grad(square_root), device="host"), 1 / 6),
        (lambda a: jvp(square_root, (a,), (1.0,))[1], 1 / 6),
        (hessian(square_root), -1 / 108),
    ):
        np.testing.assert_allclose(np.asarray(function(9.0)), expected, rtol=1e-12)
    check_gradient(lambda x: square_root(np.exp(x)).sum(), X)


def test_a_root_of_several_unknowns() -> None:
    def function(w: Any) -> Any:
        def residual(x: Any) -> Any:
            return A @ x + 0.1 * np.sin(x) * w - w

        def solve(f: Any, x: Any) -> Any:
            return while_loop(lambda x: np.abs(f(x)).max() > 1e-14, lambda x: x - 0.4 * f(x), x)

        return (custom_root(residual, np.zeros(3, like=w), solve, iterated) ** 2).sum()

    check_gradient(function, X)


def test_the_first_guess_has_no_derivative() -> None:
    assert grad(lambda x0: custom_root(lambda x: x * x - 4.0, x0, newton, lambda g, y: y))(3.0) == 0


def test_implicit_derivatives_check_what_they_are_given() -> None:
    def raised(function: Any) -> str:
        with pytest.raises(errors.TransformError) as caught:
            tracegraph.jit(function, device="host")(X)
        return str(caught.value)

    text = raised(lambda b: custom_linear_solve(lambda x: x, b, lambda m, b: (b,)))
    assert "must return * of f64[3], got (*,) of f64[3]" in text
    text = raised(lambda b: custom_linear_solve(lambda x: x[:1], b, lambda m, b: b))
    assert "of f64[3], got * of f64[1]" in text
    text = raised(lambda b: custom_root(lambda x: x, 3, newton, lambda g, y: y))
    assert "x0 is ~i64[]" in text
    text = raised(lambda b: custom_linear_solve(lambda x: x, b, lambda m, b: b, has_aux=True))
    assert "must return a pair (x, aux)" in text


def test_calls_are_inlined_last() -> None:
    jitted = tracegraph.jit(lambda x: tripled(x, 2.0) + checkpoint(np.cos)(x), device="cuda")
    assert len(jitted.lower(X).plan.graph.nodes) == 1
    assert "sin" in jitted.lower(X).source
    np.testing.assert_allclose(
        np.asarray(tracegraph.jit(lambda x: tripled(x, 2.0), device="host")(X)), 2 * np.sin(X)
    )
