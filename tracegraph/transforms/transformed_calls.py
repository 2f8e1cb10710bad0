"""Calls of transformed functions: arguments as leaves, the function as a region, results as trees.

While a function is traced, a transform records into that trace. Otherwise it traces a program of
its own, which is then run equation by equation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tracegraph import errors, tree
from tracegraph.arrays.eager import any_on_device
from tracegraph.control.regions import Tree, flatten_checked
from tracegraph.ir.program import Atom, Region, walk
from tracegraph.ir.record import record, replace
from tracegraph.ir.types import ArrayType, type_of
from tracegraph.ir.varying import Axes, Sets, VaryingAxes
from tracegraph.tracing.foreign import is_foreign
from tracegraph.tracing.function_table import FUNCTIONS
from tracegraph.tracing.parameters import parameters_of
from tracegraph.tracing.trace import Active, Trace, current_trace, trace_program
from tracegraph.tracing.tracer import Tracer
from tracegraph.transforms.derivatives import branches as _branches  # noqa: F401 - enters its rules
from tracegraph.transforms.derivatives import loops as _loops  # noqa: F401 - enters its rules
from tracegraph.transforms.derivatives.activity import is_inexact
from tracegraph.transforms.derivatives.linearize import (
    Linearizer,
    Tangents,
    require_forward,
    strong,
)
from tracegraph.transforms.derivatives.transpose import Transposer
from tracegraph.transforms.evaluate import evaluate
from tracegraph.transforms.tidy import tidied, tidied_program
from tracegraph.transforms.trace_emitter import Emit, plain

Function = Callable[..., Any]
Leaves = Sequence[Any]


@record
class TracedFunction:
    """A traced function: its region, and the outer atoms bound to its trailing parameters.

    With `effects`, the last parameter and the last result are tokens.
    """

    region: Region
    captures: tuple[Atom, ...]
    result: Tree
    effects: bool

    @property
    def types(self) -> tuple[ArrayType, ...]:
        """Types of the leaves of the result."""
        return self.region.result_types[: len(self.result.leaves)]

    def run(
        self, trace: Trace, linear: Trace, leaves: Leaves, tangents: Tangents, count: int
    ) -> tuple[list[Tracer], list[Tracer | None]]:
        """Record the function; the leaves of its result, and the tangents of the first `count`.

        Those are strong, as they are where the transform is called outside of a trace.
        """
        args = [*leaves, *(Tracer(trace, atom) for atom in self.captures)]
        if self.effects:
            args.append(Tracer(trace, trace.token()))
        given = [*tangents, *[None] * (len(args) - len(tangents))]
        wanted = [i < count for i in range(len(self.region.results))]
        outs, found = Linearizer(trace, linear).run(self.region, args, given, wanted)
        if self.effects:
            trace.last_token = outs.pop()
        return [*(strong(trace, out) for out in outs[:count]), *outs[count:]], found[:count]


def trace_function(
    transform: str,
    function: Function,
    call: Callable[[Leaves], Any],
    types: Sequence[ArrayType],
    trace: Trace,
    paths: Sequence[str],
    varying: Sequence[Axes] = (),
) -> TracedFunction:
    """Trace `call(leaves)`, which calls the user's `function`, as an optimized region in a trace.

    `paths` name the parameters; `varying` are the axes over which they differ between devices.
    """
    inner = Trace(trace)
    inner.orders += 1
    sets: Sequence[Axes | None] = varying or [None] * len(types)
    with Active(inner):
        params = [inner.param(*each) for each in zip(types, paths, sets, strict=True)]
        result = flatten_checked(call(params), transform, "result", function)
        region = inner.close(result.leaves)
    effects = inner.first_token is not None and inner.last_token is not None
    if inner.first_token is not None and inner.last_token is not None:
        params_, results = (*region.params, inner.first_token), region.results
        region = Region(params_, region.eqns, (*results, inner.last_token.atom))
    region = tidied(region)
    return TracedFunction(region, tuple(inner.captures), result, effects)


@record
class LinearMap:
    """A linear region and its residuals: tangents of arguments -> tangents of results.

    `inputs` and `outputs` say which leaves of the arguments and of the results take part; the
    parameters of the region are the tangents, then the residuals. `varying` has the axes over which
    these differ between devices; empty, if it is not known.
    """

    region: Region
    residuals: tuple[Any, ...]
    inputs: tuple[bool, ...]
    outputs: tuple[bool, ...]
    varying: Sets = ()

    def apply(self, trace: Trace, tangents: Sequence[Any]) -> list[Any]:
        """The tangents of all results, None for zero, of those of all arguments.

        Raises:
            CustomRuleError: a rule of a custom_vjp has no transpose.
        """
        for eqn in walk(self.region):
            if eqn.op.name == "custom_linear":
                require_forward(eqn.attrs)
        given = [t for t, active in zip(tangents, self.inputs, strict=True) if active]
        args = [*given, *self.residuals]
        found, _ = Linearizer(trace, trace).run(self.region, args, [None] * len(args))
        return _spread(found, self.outputs)

    def transpose(self, trace: Trace, cotangents: Sequence[Any]) -> list[Any]:
        """The cotangents of all arguments, None for zero, of those of all results."""
        count = sum(self.inputs)
        linear = [i < count for i in range(len(self.region.params))]
        given = [ct for ct, active in zip(cotangents, self.outputs, strict=True) if active]
        varying = self.varying or None
        found = Transposer(trace).run(self.region, linear, self.residuals, given, (), varying)
        return _spread(found, self.inputs)

    def require_equal(self, trace: Trace, cotangents: Sequence[Any]) -> None:
        """Check that cotangents of results that are the same on all devices are the same, too.

        Raises:
            ShardingError: one is not.
        """
        if not self.varying:
            return
        given = [ct for ct, active in zip(cotangents, self.outputs, strict=True) if active]
        for ct, axes in zip(given, VaryingAxes().results(self.region, self.varying), strict=True):
            more = sorted(trace.varying_axes(ct) - axes)
            if more:
                raise errors.ShardingError(
                    "the cotangent of a result that is the same on all devices along "
                    f"{more[0]!r} differs between them; sum it by psum over {more[0]!r} first"
                )

    def with_residuals(self, residuals: Sequence[Any]) -> LinearMap:
        """The same with other values for the residuals."""
        return replace(self, residuals=tuple(residuals))


def _spread(values: Sequence[Any], flags: Sequence[bool]) -> list[Any]:
    """The values at the places that are flagged, None elsewhere."""
    each = iter(values)
    return [next(each) if flag else None for flag in flags]


def linearized(
    trace: Trace, traced: TracedFunction, leaves: Leaves, active: Sequence[bool], count: int
) -> tuple[list[Tracer], LinearMap]:
    """Record the function; its result's leaves, and the linear map of the tangents of the first
    `count` of these.
    """
    linear = Trace(trace)
    tangents = [
        linear.param(p.type.strong()) if flag else None
        for p, flag in zip(traced.region.params, active, strict=False)
    ]
    outs, found = traced.run(trace, linear, leaves, tangents, count)
    with Active(linear):
        region = linear.close([t for t in found if t is not None])
    residuals = tuple(Tracer(trace, atom) for atom in linear.captures)
    varying = list[Axes]()
    if trace.axes:
        varying += [trace.varying_axes(x) for x, flag in zip(leaves, active, strict=True) if flag]
        varying += map(trace.varying_axes, residuals)
    outputs = tuple(t is not None for t in found)
    return outs, LinearMap(region, residuals, tuple(active), outputs, tuple(varying))


def recorded_values(
    name: str, leaves: Leaves, function: Callable[[Trace, Leaves], Sequence[Any]]
) -> list[Any]:
    """The values of what `function(trace, leaves)` records: traced ones, or arrays if nothing is
    traced.
    """
    trace = current_trace()
    if trace is not None:
        return list(function(trace, leaves))
    device = next((x.device for x in leaves if any_on_device((x,))), "host")

    def recorded(*tracers: Tracer) -> Sequence[Any]:
        trace = current_trace()
        assert trace is not None
        return function(trace, tracers)

    types = [type_of(x) for x in leaves]
    program = trace_program(recorded, types, name, device=device)
    return evaluate(tidied_program(program), leaves)


def require_function(transform: str, fun: Any) -> None:
    """Check that a transform is given a function.

    Raises:
        TransformError: it is not a function, such as the result of one.
    """
    if not callable(fun):
        raise errors.TransformError(
            transform, f"takes a function, not {errors.value_text(fun)}; call what it returns"
        )


class TransformCall:
    """The arguments of a call. `leaves` are traced: those of the arguments `argnums`, `count` of
    them, then other traced values and arrays on a device. Anything else is passed on as it is.

    A Python number among them stays weak: it gives way to the dtypes of arrays, as it does where
    nothing is differentiated. Its tangents, and what is computed of it, are strong outside.
    """

    def __init__(
        self,
        transform: str,
        function: Function,
        args: Sequence[Any],
        kwargs: dict[str, Any],
        argnums: Sequence[int],
    ) -> None:
        require_function(transform, function)
        self.function = function
        self.argnums = argnums
        names = parameters_of(function).positional
        self.trees = [
            flatten_checked(_adopted(args[i]), transform, _name(names, i), called=function)
            for i in argnums
        ]
        self.paths = [
            path
            for i, each in zip(argnums, self.trees, strict=True)
            for path in tree.paths(each.structure, _name(names, i))
        ]
        self.count = len(self.paths)
        others = [None if i in argnums else arg for i, arg in enumerate(args)]
        self.rest, self.structure = tree.flatten(_adopted((others, kwargs)))
        self.arrays = [i for i, leaf in enumerate(self.rest) if _is_remote(leaf)]
        self.leaves = [
            *(leaf for each in self.trees for leaf in each.leaves),
            *(self.rest[i] for i in self.arrays),
        ]
        self.types = [type_of(leaf) for leaf in self.leaves]

    def run(self, leaves: Leaves) -> Any:
        """Call the function with these leaves."""
        rest = list(self.rest)
        for i, leaf in zip(self.arrays, leaves[self.count :], strict=True):
            rest[i] = leaf
        args, kwargs = tree.unflatten(self.structure, rest)
        for i, value in zip(self.argnums, self.unflatten(leaves[: self.count]), strict=True):
            args[i] = value
        return self.function(*args, **kwargs)

    def unflatten(self, leaves: Leaves) -> list[Any]:
        """The trees of the arguments `argnums` with other leaves."""
        found, start = [], 0
        for each in self.trees:
            end = start + len(each.leaves)
            found.append(tree.unflatten(each.structure, leaves[start:end]))
            start = end
        return found

    def trace(self, transform: str, trace: Trace, call: Callable[[Leaves], Any]) -> TracedFunction:
        """Trace `call(leaves)`, which runs this call, in a trace."""
        paths = [f"argument {path}" for path in self.paths]
        paths += ["an argument"] * len(self.arrays)
        varying = list(map(trace.varying_axes, self.leaves)) if trace.axes else ()
        return trace_function(transform, self.function, call, self.types, trace, paths, varying)


def _name(names: Sequence[str], i: int) -> str:
    return names[i] if i < len(names) else f"args[{i}]"


def _is_remote(leaf: Any) -> bool:
    """Whether the elements are not at hand: others are passed on, to be read as without `grad`."""
    return isinstance(leaf, Tracer) or any_on_device((leaf,))


def _adopted(value: Any) -> Any:
    """A tree with Arrays in place of other libraries' arrays."""
    return tree.map(lambda leaf: FUNCTIONS["adopted"](leaf) if is_foreign(leaf) else leaf, value)


def split_aux(transform: str, function: Function, call: Callable[[Leaves], Any]) -> Any:
    """`call` for a function that returns (result, aux); raises where it does not."""

    def checked(leaves: Leaves) -> Any:
        returned = call(leaves)
        if not isinstance(returned, tuple) or len(returned) != 2:
            raise errors.TransformError(
                transform,
                f"with has_aux, {errors.function_text(function)} must return a pair "
                f"(result, aux), not {errors.value_text(returned)}; without has_aux, the result "
                "alone",
            )
        return returned

    return checked


def dense_inexact(trace: Trace, types: Sequence[ArrayType], found: Sequence[Any]) -> list[Any]:
    """The tangents or cotangents of inexact values, with zeros made for None; they are strong."""
    emit = Emit(trace)
    return [
        emit.zeros(type_) if ct is None else strong(trace, plain(trace, ct))
        for type_, ct in zip(types, found, strict=True)
        if is_inexact(type_)
    ]
