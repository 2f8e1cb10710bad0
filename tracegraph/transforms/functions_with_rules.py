"""Functions with rules, as users call them: their arguments, and the regions of one equation.

Function and rules are traced where the function is called, so that all may use any value around
them. What they capture becomes operands of the equation.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from tracegraph import errors, tree
from tracegraph.arrays.array import Array
from tracegraph.control.regions import TracedRegion, trace_tree, unify_captures, with_token
from tracegraph.ir.effects import TOKEN
from tracegraph.ir.op import get
from tracegraph.ir.program import Region
from tracegraph.ir.record import replace
from tracegraph.ir.types import ArrayType, type_of
from tracegraph.ir.varying import Axes
from tracegraph.tracing.parameters import parameters_of
from tracegraph.tracing.trace import Trace, current_trace
from tracegraph.tracing.tracer import Tracer
from tracegraph.transforms.bodies import region_of
from tracegraph.transforms.derivatives.activity import is_inexact
from tracegraph.transforms.derivatives.linearize import Linearizer
from tracegraph.transforms.tidy import pruned, tidied
from tracegraph.transforms.trace_emitter import Emit

Function = Callable[..., Any]
Leaves = Sequence[Any]


class BoundArguments:
    """Arguments of a call, all by position, defaults among them: so rules take them. `leaves` are
    the arrays and inexact numbers among them; anything else is passed on as it is.

    Those that the function takes by `keywords` alone come last, if they are given.
    """

    def __init__(self, function: Function, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        args, keywords = _by_position(function, args, kwargs)
        self.keywords = tuple(keywords)
        self.function = function
        self.count = len(args)
        self.all, self.structure = tree.flatten((*args, *keywords.values()))
        self.places = [i for i, leaf in enumerate(self.all) if _is_traced(leaf)]
        self.leaves = [self.all[i] for i in self.places]
        self.types = [type_of(leaf) for leaf in self.leaves]
        self.inexact = [i for i, t in enumerate(self.types) if is_inexact(t)]
        self.tangent_types = [self.types[i] for i in self.inexact]

    @property
    def names(self) -> list[str]:
        """The names of the arguments."""
        names = parameters_of(self.function).positional[: self.count]
        others = [f"args[{i}]" for i in range(len(names), self.count)]
        return [*names, *others, *self.keywords]

    def varying(self, trace: Trace) -> list[Axes]:
        """The axes of devices over which the leaves vary."""
        return list(map(trace.varying_axes, self.leaves))

    @property
    def orders(self) -> int:
        """How often they may be differentiated: as often as what is recorded where they are made.

        A value of a trace further out does not depend on what the transforms inside it
        differentiate by.
        """
        owners = [leaf.owner for leaf in self.leaves if isinstance(leaf, Tracer)]
        return max([getattr(owner, "orders", 0) for owner in owners], default=0)

    def call(self, function: Function, leaves: Leaves) -> Any:
        """Call the function with these leaves."""
        every = self.rebuilt(leaves)
        keywords = dict(zip(self.keywords, every[self.count :], strict=True))
        return function(*every[: self.count], **keywords)

    def rebuilt(self, leaves: Leaves) -> tuple[Any, ...]:
        """The arguments with these leaves."""
        every = list(self.all)
        for i, leaf in zip(self.places, leaves, strict=True):
            every[i] = leaf
        args: tuple[Any, ...] = tree.unflatten(self.structure, every)
        return args

    def tangents(self, leaves: Leaves) -> tuple[Any, ...]:
        """Tangents in the place of arguments, None where there is none."""
        every: list[Any] = [None] * len(self.all)
        for i, leaf in zip(self.inexact, leaves, strict=True):
            every[self.places[i]] = leaf
        found: tuple[Any, ...] = tree.unflatten(self.structure, every)
        return found

    def cotangents(self, transform: str, function: Function, returned: Any) -> list[Any]:
        """What a rule returned for each inexact leaf: a cotangent, or None for zero.

        Raises:
            CustomRuleError: it is not a tuple of one tree for each argument, or of other shapes.
        """
        count = len(self.structure.children())

        def named() -> str:
            of = errors.function_text(self.function)
            return f"the backward rule {errors.function_text(function)} of {of}"

        if not isinstance(returned, (tuple, list)) or len(returned) != count:
            got = errors.value_text(returned)
            if isinstance(returned, (tuple, list)):
                got = f"one of {len(returned)}"
            raise errors.CustomRuleError(
                transform,
                f"{named()} must return a tuple of {count} cotangents, one for each argument, not "
                f"{got}; None stands for zero, and for arguments that are not differentiated",
            )
        every: list[Any] = []
        children = self.structure.children()
        for child, part, path in zip(children, returned, self.names, strict=True):
            if part is None:
                every += [None] * child.num_leaves
                continue
            try:
                every += child.flatten_up_to(part)
            except ValueError:
                needed, got = map(errors.structure_text, (child, tree.structure(part)))
                raise errors.CustomRuleError(
                    transform,
                    f"{named()} must return cotangents of the structure {needed} for the argument "
                    f"{path}, got {got}",
                ) from None
        found = [every[self.places[i]] for i in self.inexact]
        return fitted(transform, function, self.tangent_types, found, self.paths)

    def paths(self) -> list[str]:
        """What the cotangent of each inexact leaf is called."""
        every = [
            path
            for child, name in zip(self.structure.children(), self.names, strict=True)
            for path in tree.paths(child, name)
        ]
        return [f"the cotangent of argument {every[self.places[i]]}" for i in self.inexact]


def _by_position(
    function: Function, args: Sequence[Any], kwargs: dict[str, Any]
) -> tuple[Sequence[Any], dict[str, Any]]:
    """The arguments by position, and those that the function takes by keywords alone.

    Defaults of Python functions are among them. Those of other functions, such as `out=None` of a
    ufunc, are not, nor are those that would need a mapped axis.
    """
    if not kwargs and len(args) >= len(parameters_of(function).positional):
        return args, {}
    inner = inspect.unwrap(function)
    while isinstance(inner, partial):
        inner = inner.func
    python = hasattr(inner, "__code__") or hasattr(type(inner).__call__, "__code__")
    python = python and not getattr(function, "is_mapped", False)
    if not kwargs and not python:
        return args, {}
    try:
        bound = inspect.signature(function).bind(*args, **kwargs)
    except (TypeError, ValueError):  # the function's own error says what is wrong
        return args, kwargs
    if python:
        bound.apply_defaults()
    return bound.args, {name: x for name, x in bound.kwargs.items() if name in kwargs}


def _is_traced(leaf: Any) -> bool:
    return isinstance(leaf, (np.ndarray, np.generic, Array, Tracer, float, complex))


def fitted(
    transform: str,
    function: Function,
    types: Sequence[ArrayType],
    found: Sequence[Any],
    paths: Callable[[], Sequence[str]] | None = None,
) -> list[Any]:
    """What a rule returned, None for zero, in the dtypes of the values it belongs to. `paths` gives
    their names.

    Raises:
        CustomRuleError: a shape differs, or a dtype that does not convert by "same_kind".
    """
    for i, (type_, value) in enumerate(zip(types, found, strict=True)):
        if value is not None and not _fits(value, type_):
            name = "" if paths is None else f" ({paths()[i]})"
            got = str(type_of(value)) if hasattr(value, "dtype") else errors.value_text(value)
            raise errors.CustomRuleError(
                transform,
                f"{errors.function_text(function)} returned {got} for a value of type "
                f"{type_.strong()}{name}, whose shape and kind of dtype it must have",
            )
    return list(found)


def _fits(value: Any, type_: ArrayType) -> bool:
    try:
        given = type_of(value)
    except (TypeError, OverflowError):
        return False
    return given.shape == type_.shape and np.can_cast(given.dtype, type_.dtype, "same_kind")


def in_dtypes(types: Sequence[ArrayType], values: Sequence[Any]) -> list[Any]:
    """Record, in the current trace, values cast to these dtypes, and zeros for None."""
    trace = current_trace()
    assert trace is not None
    emit, found = Emit(trace), []
    for type_, value in zip(types, values, strict=True):
        if value is None:
            value = emit.zeros(type_)
        elif type_of(value) != type_.strong():
            value = emit.cast(value, dtype=type_.dtype)
        found.append(value)
    return found


class Regions:
    """The regions of one call, traced one after the other in a trace."""

    def __init__(self, name: str, trace: Trace, arguments: int) -> None:
        self.name = name
        self.trace = trace
        self.arguments = arguments
        self.traced: list[tuple[TracedRegion, int | None]] = []

    def add(
        self,
        call: Callable[[Sequence[Tracer]], Any],
        types: Sequence[ArrayType],
        function: Function,
        results: int | None = None,
        *,
        pure: bool = False,
        varying: Sequence[Axes] = (),
    ) -> TracedRegion:
        """Trace a region. Its token follows the arguments, and comes back after `results`. Its
        parameters vary over these axes of devices, if that is known.

        Raises:
            CustomRuleError: a `pure` one has effects.
        """
        traced = trace_tree(call, types, self.trace, self.name, function, varying)
        if pure and traced.tokens is not None:
            raise errors.CustomRuleError(
                self.name, f"{errors.function_text(function)} must have no effects here"
            )
        place = len(traced.types) if results is None else results
        self.traced.append((traced, None if pure else place))
        return traced

    def record(self, leaves: Leaves, attrs: dict[str, Any]) -> list[Tracer]:
        """Record the equation; the results of the first region, without the token.

        A function alone is optimized where it stands.
        """
        trace, operands = self.trace, [self.trace.read(x) for x in leaves]
        effects = any(traced.tokens is not None for traced, _ in self.traced)
        found = []
        for traced, place in self.traced:
            if effects and place is not None:
                traced = with_token(traced, self.arguments, place)
            found.append(traced)
        if effects:
            operands.append(trace.token())
        regions, captures = unify_captures(found)
        attrs = {"args": len(operands), **attrs}
        passes = pruned if len(regions) == 1 else tidied
        optimized = tuple(map(passes, regions))
        outs = list(trace.record(get(self.name), (*operands, *captures), attrs, optimized))
        if effects:
            place = self.traced[0][1]
            assert place is not None
            trace.last_token = outs.pop(place)
        return outs


def without_effects(trace: Trace, region: Region) -> Region:
    """The region without effects, nor tokens among its parameters and results."""
    if not any(p.type == TOKEN for p in region.params):
        return region
    params = [p for p in region.params if p.type != TOKEN]

    def record(inner: Trace, given: list[Tracer]) -> Sequence[Any]:
        each, token = iter(given), Emit(inner).zeros(TOKEN)
        args = [token if p.type == TOKEN else next(each) for p in region.params]
        outs, _ = Linearizer(inner, inner).run(region, args, [None] * len(args))
        return [out for out in outs if out.type != TOKEN]

    return tidied(region_of(trace, [p.type for p in params], record))


def run_region(trace: Trace, region: Region, args: Leaves) -> list[Tracer]:
    """Record the equations of a region on these arguments; its results."""
    return Linearizer(trace, trace).run(region, args, [None] * len(args))[0]


def limited(region: Region, results: slice) -> Region:
    """The region with some of its results alone."""
    return tidied(replace(region, results=region.results[results]))
