"""custom_linear_solve and custom_root: derivatives of solutions, not of the way to them.

    A x = b              A ẋ = ḃ - Ȧ x
    f(x) = 0             f'(x) ẋ = -ḟ(x)

Tangents solve a linear system with the same operator, cotangents one with its transpose. The
iterations of the solver are never differentiated: loops of unknown length are fine in it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from tracegraph import errors, tree
from tracegraph.control.regions import (
    TracedRegion,
    Tree,
    axes_of_results,
    flatten_checked,
    join,
    trace_tree,
)
from tracegraph.errors.tracebacks import entry_point
from tracegraph.ir.op import get
from tracegraph.ir.program import Eqn, Region
from tracegraph.tracing.trace import Trace, current_trace
from tracegraph.tracing.tracer import Tracer
from tracegraph.transforms.bodies import dense, region_of
from tracegraph.transforms.cotangent_axes import of_system
from tracegraph.transforms.derivatives import linearize, transpose
from tracegraph.transforms.derivatives.activity import is_inexact
from tracegraph.transforms.derivatives.forward import jvp
from tracegraph.transforms.derivatives.linear import linear_transpose, transpose_region
from tracegraph.transforms.derivatives.linearize import Linearizer, Results, Tangents
from tracegraph.transforms.derivatives.reverse import vjp
from tracegraph.transforms.derivatives.transpose import Cotangents, Transposer
from tracegraph.transforms.functions_with_rules import Regions, limited, without_effects
from tracegraph.transforms.trace_emitter import Emit

__all__ = ["custom_linear_solve", "custom_root"]

Function = Callable[..., Any]


@entry_point
def custom_linear_solve(
    matvec: Function,
    b: Any,
    solve: Function,
    transpose_solve: Function | None = None,
    symmetric: bool = False,
    has_aux: bool = False,
) -> Any:
    """The solution x of ``matvec(x) = b``, whose derivatives solve systems with the same operator.

    Args:
        matvec: a linear function of trees like `b`. It may capture arrays; derivatives with respect
            to them are right as well.
        b: the right-hand side: a tree of floats or complex numbers, which is also the shape of x.
        solve: ``solve(matvec, b)`` returns x.
        transpose_solve: the same for the transposed operator, which it is given. Reverse mode needs
            it unless `solve` is itself linear and its loops are bounded.
        symmetric: the operator is its own transpose (which is not conjugated); `solve` serves both.
        has_aux: `solve` returns a pair (x, aux); aux has no derivative.

    Raises:
        CustomRuleError: `solve` returns another structure or other types than those of `b`; or
            reverse mode needs `transpose_solve`.
        NonlinearError: `matvec` is not linear, where its transpose is needed.

    >>> import numpy as np
    >>> import tracegraph
    >>> def half(x):
    ...     return custom_linear_solve(lambda y: 2 * y, x, lambda matvec, b: b / 2, symmetric=True)
    >>> tracegraph.grad(half)(3.0)
    np.float64(0.5)
    """
    right_side = _inexact("custom_linear_solve", b, "b")
    trace = current_trace()
    if trace is None:
        return solve(matvec, b)

    def unflatten(leaves: Sequence[Any]) -> Any:
        return tree.unflatten(right_side.structure, leaves)

    def applied(leaves: Sequence[Any]) -> Any:
        return matvec(unflatten(leaves))

    def solved(solver: Function, operator: Function) -> Callable[[Sequence[Any]], Any]:
        return lambda leaves: _pair(solver, solver(operator, unflatten(leaves)), has_aux)

    right_side = _settled(trace, right_side, solved(solve, matvec), solve)
    types = right_side.types
    regions = Regions("linear_solve", trace, len(types))
    given = list(map(trace.varying_axes, right_side.leaves))
    whole = regions.add(solved(solve, matvec), types, solve, varying=given)
    _require_like("custom_linear_solve", "solve", solve, right_side, whole, "b")
    varying = axes_of_results(trace, whole, given)[: len(types)]
    operator = regions.add(applied, types, matvec, pure=True, varying=varying)
    _require_like("custom_linear_solve", "matvec", matvec, right_side, operator, "b")
    attrs: dict[str, Any] = {"x": len(types), "symmetric": bool(symmetric)}
    if transpose_solve is not None and not symmetric and trace.orders:

        def transposed(x: Any) -> Any:
            return linear_transpose(matvec, unflatten(types))(x)[0]

        try:
            name = "custom_linear_solve"
            transposed_region = regions.add(
                solved(transpose_solve, transposed), types, transpose_solve, varying=varying
            )
            _require_like(
                name, "transpose_solve", transpose_solve, right_side, transposed_region, "b"
            )
        except Exception as error:  # of the derivative that needs it
            attrs["fault"] = error
            del regions.traced[2:]
    outs = regions.record(right_side.leaves, attrs)
    x, aux = tree.unflatten(whole.structure, outs)
    return (x, aux) if has_aux else x


@entry_point
@errors.refuses(initial_guess="the first guess is called x0")
def custom_root(
    f: Function, x0: Any, solve: Function, tangent_solve: Function, has_aux: bool = False
) -> Any:
    """A root x of `f` near `x0`, whose derivatives are those of the implicit function.

    Args:
        f: a function of trees like `x0` that returns such a tree. It captures the values that the
            root depends on; derivatives are with respect to them. The first guess has no
            derivative.
        x0: the first guess: a tree of floats or complex numbers.
        solve: ``solve(f, x0)`` returns the root, and is never differentiated.
        tangent_solve: ``tangent_solve(g, y)`` solves ``g(x) = y`` for a linear `g`: for a scalar,
            it returns ``y / g(1.0)``. It is given the derivative of `f`, or its transpose.
        has_aux: `solve` returns a pair (x, aux); aux has no derivative.

    Raises:
        CustomRuleError: `solve`, `f` or `tangent_solve` returns another structure or other types
            than those of `x0`.

    >>> import tracegraph
    >>> def newton(f, x):
    ...     step = lambda x: x - f(x) / tracegraph.jvp(f, (x,), (1.0,))[1]
    ...     return tracegraph.while_loop(lambda x: abs(f(x)) > 1e-12, step, x)
    >>> def root(a):
    ...     return custom_root(lambda x: x * x - a, a, newton, lambda g, y: y / g(1.0))
    >>> round(float(tracegraph.grad(root)(9.0)), 12)
    0.166666666667
    """
    guess = _inexact("custom_root", x0, "x0")
    trace = current_trace()
    if trace is None:
        return solve(f, x0)
    count = len(guess.types)

    def unflatten(leaves: Sequence[Any]) -> Any:
        return tree.unflatten(guess.structure, leaves)

    def solved(leaves: Sequence[Any]) -> Any:
        return _pair(solve, solve(f, unflatten(leaves)), has_aux)

    guess = _settled(trace, guess, solved, solve)
    types = guess.types
    regions = Regions("custom_root", trace, count)
    first = list(map(trace.varying_axes, guess.leaves))
    whole = regions.add(solved, types, solve, varying=first)
    _require_like("custom_root", "solve", solve, guess, whole, "x0")
    varying = axes_of_results(trace, whole, first)[:count]

    def residual(leaves: Sequence[Any]) -> Any:
        return f(unflatten(leaves))

    function = regions.add(residual, types, f, pure=True, varying=varying)
    _require_like("custom_root", "f", f, guess, function, "x0")

    def forwards(leaves: Sequence[Any]) -> Any:
        y, x = unflatten(leaves[:count]), unflatten(leaves[count:])
        return tangent_solve(lambda t: jvp(f, (x,), (t,))[1], y)

    def backwards(leaves: Sequence[Any]) -> Any:
        y, x = unflatten(leaves[:count]), unflatten(leaves[count:])
        return tangent_solve(lambda ct: vjp(f, x)[1](ct)[0], y)

    attrs: dict[str, Any] = {"x": count}
    if trace.orders:
        try:
            both = (*types, *types)
            tangent = regions.add(forwards, both, tangent_solve, varying=varying * 2)
            _require_like("custom_root", "tangent_solve", tangent_solve, guess, tangent, "x0")
            with suppress(errors.ReverseLoopError):  # f has a loop of unknown length: forwards only
                regions.add(backwards, both, tangent_solve, varying=varying * 2)
        except Exception as error:  # of the derivative that needs it
            attrs["fault"] = error
            del regions.traced[2:]
    outs = regions.record(guess.leaves, attrs)
    x, aux = tree.unflatten(whole.structure, outs)
    return (x, aux) if has_aux else x


def _inexact(transform: str, value: Any, name: str) -> Tree:
    """The leaves of an unknown, which must be floats or complex numbers.

    Raises:
        DifferentiatedTypeError: they are not.
    """
    given = flatten_checked(value, transform, name)
    for path, type_ in zip(tree.paths(given.structure, name), given.types, strict=True):
        if not is_inexact(type_):
            raise errors.DifferentiatedTypeError(
                transform, f"{path} is {type_}; it must be a float or a complex number"
            )
    return given


def _settled(
    trace: Trace, unknown: Tree, solved: Callable[[Sequence[Any]], Any], solve: Function
) -> Tree:
    """The unknown in the types of the solution: a Python number takes that which `solve` gives it,
    as it does in a loop.
    """
    types = [t.strong() for t in unknown.types]
    if any(t.weak for t in unknown.types):
        solution_types = trace_tree(
            solved, unknown.types, trace, "implicit derivative", solve
        ).types
        joined = [join(*pair) for pair in zip(unknown.types, solution_types, strict=False)]
        if len(joined) == len(types) and None not in joined:
            types = [t.strong() for t in joined if t is not None]
    emit = Emit(trace)
    leaves = [
        x if have == needed else emit.cast(x, dtype=needed.dtype)
        for x, have, needed in zip(unknown.leaves, unknown.types, types, strict=True)
    ]
    return Tree(tuple(leaves), tuple(types), unknown.structure)


def _pair(function: Function, returned: Any, has_aux: bool) -> tuple[Any, Any]:
    """The solution, and aux; without, an empty tuple.

    Raises:
        CustomRuleError: with aux, the function returned no pair.
    """
    if not has_aux:
        return returned, ()
    if not isinstance(returned, (tuple, list)) or len(returned) != 2:
        raise errors.CustomRuleError(
            "custom_linear_solve and custom_root",
            f"with has_aux, {errors.function_text(function)} must return a pair (x, aux), not "
            f"{errors.value_text(returned)}",
        )
    return returned[0], returned[1]


def _require_like(
    construct: str, role: str, function: Function, unknown: Tree, traced: TracedRegion, like: str
) -> None:
    """Check that a function returned a tree like the unknown: `solve` with aux behind it.

    Raises:
        CustomRuleError: the structure, or a type, is another.
    """
    structure, types = traced.structure, traced.types
    if role in ("solve", "transpose_solve"):
        structure = structure.children()[0]
    returned = [(t.dtype, t.shape) for t in types[: len(unknown.types)]]
    if structure != unknown.structure or returned != [(t.dtype, t.shape) for t in unknown.types]:
        shape, wanted = map(errors.structure_text, (structure, unknown.structure))
        got = ", ".join(str(t.strong()) for t in types[: structure.num_leaves])
        needed = ", ".join(str(t.strong()) for t in unknown.types)
        raise errors.CustomRuleError(
            construct,
            f"{role}, which is {errors.function_text(function)}, must return {wanted} of {needed}, "
            f"got {shape} of {got}; it returns a tree like {like}",
        )


# derivatives


def _solve_rule(self: Linearizer, eqn: Eqn, xs: Sequence[Tracer], ts: Tangents) -> Results:
    count, split = eqn.attrs["x"], eqn.attrs["args"]
    outs = self.copied(eqn, xs)
    moved = _moved(self, eqn.regions[1], outs[:count], xs[split:], ts[split:])
    emit = Emit(self.linear)
    right = [_minus(emit, t, m) for t, m in zip(ts, moved, strict=False)]
    if all(t is None for t in right):
        return outs, ()
    solve, *others = eqn.regions
    regions = (_pure(self.linear, solve, count), *others[:1])
    regions += tuple(_pure(self.linear, region, count) for region in others[1:])
    symmetric = eqn.attrs["symmetric"]
    fault = eqn.attrs.get("fault")
    found = _record_solve(self.linear, regions, right, xs[split:], outs[:count], symmetric, fault)
    return outs, found


def _root_rule(self: Linearizer, eqn: Eqn, xs: Sequence[Tracer], ts: Tangents) -> Results:
    count, split = eqn.attrs["x"], eqn.attrs["args"]
    outs = self.copied(eqn, xs)
    _, function, *solves = eqn.regions
    roots, captures = outs[:count], xs[split:]
    moved = _moved(self, function, roots, captures, ts[split:])
    if all(m is None for m in moved):
        return outs, ()
    if "fault" in eqn.attrs:
        raise eqn.attrs["fault"]
    emit = Emit(self.linear)
    right = [_minus(emit, None, m) for m in moved]
    types = [x.type for x in (*roots, *roots, *captures)]

    def slope(trace: Trace, params: list[Tracer]) -> Sequence[Any]:
        tangents = [*params[:count], *[None] * len(captures)]
        _, found = Linearizer(trace, trace).run(function, params[count:], tangents)
        return dense(trace, [x.type for x in roots], found)

    operator = region_of(self.linear, types, slope)
    forwards, *backwards = (_pure(self.linear, region, count) for region in solves)
    regions = (forwards, operator, *backwards)
    fixed = [*roots, *captures]
    return outs, _record_solve(self.linear, regions, right, fixed, roots, False)


def _moved(
    self: Linearizer,
    region: Region,
    unknowns: Sequence[Any],
    captures: Sequence[Any],
    tangents: Tangents,
) -> list[Any]:
    """The tangents of a function of the unknowns by what it captures alone."""
    if all(t is None for t in tangents):
        return [None] * len(unknowns)
    flags = [*[None] * len(unknowns), *tangents]
    return Linearizer(self.primal, self.linear).run(region, [*unknowns, *captures], flags)[1]


def _minus(emit: Emit, left: Any, right: Any) -> Any:
    if right is None:
        return left
    return emit.negative(right) if left is None else emit.subtract(left, right)


def _pure(trace: Trace, region: Region, count: int) -> Region:
    """The solution alone, without aux and effects."""
    return limited(without_effects(trace, region), slice(count))


def _record_solve(
    trace: Trace,
    regions: tuple[Region, ...],
    right: Sequence[Any],
    captures: Sequence[Any],
    like: Sequence[Any],
    symmetric: bool,
    fault: Exception | None = None,
) -> list[Any]:
    operands = [*dense(trace, [x.type.strong() for x in like], right), *captures]
    attrs: dict[str, Any] = {"args": len(right), "x": len(right), "symmetric": symmetric}
    if fault is not None:
        attrs["fault"] = fault
    atoms = [trace.read(x) for x in operands]
    return list(trace.record(get("linear_solve"), atoms, attrs, regions))


def _transpose_solve(
    self: Transposer, eqn: Eqn, flags: Sequence[bool], cts: Cotangents
) -> Cotangents:
    count = eqn.attrs["x"]
    captures = [self.value(a) for a in eqn.operands[count:]]
    types = [a.type for a in eqn.operands]
    varying = of_system(eqn, count, self.varying)

    def adjoint(operator: Region) -> Region:
        try:
            return transposed(operator)
        except errors.NonlinearError as error:
            raise errors.NonlinearError(
                error.op, error.source, "custom_linear_solve", "the argument of matvec"
            ) from None

    def transposed(region: Region) -> Region:
        def record(trace: Trace, params: list[Tracer]) -> Sequence[Any]:
            linear = [i < count for i in range(len(region.params))]
            others, cts = params[count:], params[:count]
            found = transpose_region(trace, region, linear, others, cts, varying[:count])
            return dense(trace, types[:count], found)

        return region_of(self.trace, types, record, varying)

    if "fault" in eqn.attrs:
        raise eqn.attrs["fault"]
    solve, operator, *others = eqn.regions
    if eqn.attrs["symmetric"]:
        regions = eqn.regions
    elif others:
        regions = (others[0], adjoint(operator), solve)
    else:
        try:
            backwards = transposed(solve)
        except (errors.NonlinearError, errors.ReverseLoopError, errors.DerivativeError) as error:
            raise errors.CustomRuleError(
                "custom_linear_solve",
                "reverse mode solves the transposed system, and solve cannot be transposed: "
                f"{_obstacle(error)}; pass transpose_solve, or symmetric=True if the operator is "
                "its own transpose",
            ) from error
        regions = (backwards, adjoint(operator), solve)
    found = _record_solve(
        self.trace, regions, cts[:count], captures, eqn.outputs[:count], eqn.attrs["symmetric"]
    )
    return [*found, *[None] * len(captures)]


def _obstacle(error: TypeError) -> str:
    """Why `solve` has no transpose, in a few words."""
    if isinstance(error, errors.NonlinearError):
        return (
            f"{error.op} is not linear in b{'' if error.source is None else f', at {error.source}'}"
        )
    if isinstance(error, errors.ReverseLoopError):
        return "the number of steps of its loop is not known"
    return str(error).partition("\n")[0]


linearize.STRUCTURAL["linear_solve"] = _solve_rule
linearize.STRUCTURAL["custom_root"] = _root_rule
transpose.STRUCTURAL["linear_solve"] = _transpose_solve
