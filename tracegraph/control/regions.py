"""Tracing functions over pytrees into the regions of one control-flow equation.

The functions of one construct are traced one by one. Their captures are then unified into one list
of trailing operands. Weak results are cast, inside their region, to the types of the others.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from operator import is_
from typing import Any

from tracegraph import errors, tree
from tracegraph.ir.effects import TOKEN
from tracegraph.ir.op import get
from tracegraph.ir.program import Atom, Eqn, Literal, Region, Value, application
from tracegraph.ir.record import record, replace
from tracegraph.ir.types import ArrayType, result_type, type_of
from tracegraph.ir.varying import Axes, Sets, VaryingAxes
from tracegraph.tracing.parameters import takes
from tracegraph.tracing.trace import Trace, current_trace, recorder, trace_region
from tracegraph.tracing.tracer import Tracer
from tracegraph.user_source import user_source

Types = tuple[ArrayType, ...]


@record
class Tree:
    """A flattened pytree, with the type of each leaf."""

    leaves: tuple[Any, ...]
    types: Types
    structure: tree.Structure

    def unflatten(self) -> Any:
        """The pytree itself."""
        return tree.unflatten(self.structure, self.leaves)


@record
class TracedRegion:
    """A traced function: its region, the outer atoms that it captured, its result's structure.

    If it has effects, `tokens` are the token that it takes and the one that it returns. They are
    not part of the region yet.
    """

    region: Region
    captures: tuple[Atom, ...]
    structure: tree.Structure
    tokens: tuple[Value, Atom] | None = None

    @property
    def types(self) -> Types:
        """Types of the leaves that the function returned."""
        return self.region.result_types


def require_callable(
    construct: str, functions: Mapping[str, Any], arguments: Sequence[str]
) -> None:
    """Check parameters, by name, that must be functions of these arguments.

    Raises:
        NotCallableError: one is not callable.
        ParametersError: one does not take these arguments.
    """
    for parameter, value in functions.items():
        if not callable(value):
            raise errors.NotCallableError(construct, parameter, value)
        if takes(value, len(arguments)):
            continue
        try:
            signature = inspect.signature(value)
        except (TypeError, ValueError):  # some callables have no signature
            continue
        try:
            signature.bind(*arguments)
        except TypeError:
            raise errors.ParametersError(
                construct, parameter, value, signature, arguments
            ) from None


def current_for(leaves: Sequence[Any]) -> Trace | None:
    """The trace to record into, or None to run now.

    Raises:
        EscapedTracerError: a tracer, but no trace is in progress.
    """
    recorder(leaves)
    return current_trace()


def flatten_checked(
    value: Any,
    construct: str,
    name: str,
    function: Callable[..., Any] | None = None,
    called: Callable[..., Any] | None = None,
) -> Tree:
    """The leaves of a pytree, their types, and its structure.

    Errors call the pytree `name`, and name the user's function that returned it, if one did, or
    that is `called` with it.

    Raises:
        LeafTypeError: a leaf is not a number or an array of a supported dtype.
    """
    leaves, structure = tree.flatten(value)
    types = []
    for i, leaf in enumerate(leaves):
        try:
            types.append(type_of(leaf))
        except (TypeError, OverflowError) as error:
            path = tree.paths(structure, name)[i]
            raise errors.LeafTypeError(construct, path, error, function, called) from None
    return Tree(tuple(leaves), tuple(types), structure)


def trace_tree(
    call: Callable[[Sequence[Tracer]], Any],
    types: Sequence[ArrayType],
    parent: Trace,
    construct: str,
    function: Callable[..., Any],
    varying: Sequence[Axes] = (),
) -> TracedRegion:
    """Trace `call(tracers)`, which returns a pytree, as a region inside `parent`.

    `function` is the user's function that it calls. `varying` are the axes over which parameters
    differ between devices, if it is known.
    """
    returned: list[Tree] = []

    def flat(*tracers: Tracer) -> Sequence[Any]:
        returned.append(flatten_checked(call(tracers), construct, "result", function))
        return returned[0].leaves

    region, captures, tokens = trace_region(flat, types, parent, None, varying)
    return TracedRegion(region, captures, returned[0].structure, tokens)


def traced_with_carry(
    trace: Trace, trace_body: Callable[[Sets], TracedRegion], first: Sequence[Axes], carry: int
) -> TracedRegion:
    """The body of a loop, traced by `trace_body(varying)` with the axes over which its parameters
    differ between devices, `first` in the first step; `carry` of them are carried.

    Derivatives in the body depend on these axes. So it is traced again as long as it takes some,
    and what it carries comes to differ over more axes.
    """
    varying = tuple(first)
    while True:
        before = trace.uses.sets_read
        traced = trace_body(varying)
        if trace.uses.sets_read == before:
            return traced
        after = axes_of_results(trace, traced, varying)
        grown = [was | now for was, now in zip(varying[:carry], after, strict=False)]
        settled = (*grown, *varying[carry:])
        if settled == varying:
            return traced
        varying = settled


def axes_of_results(trace: Trace, traced: TracedRegion, varying: Sequence[Axes]) -> Sets:
    """The axes over which the results of a traced function differ between devices."""
    if not trace.axes:
        return ()
    captures = [trace.varying_axes(Tracer(trace, atom)) for atom in traced.captures]
    return VaryingAxes().results(traced.region, (*varying, *captures))


def settled_axes(
    trace: Trace,
    operands: Sequence[Atom],
    attrs: Mapping[str, Any],
    regions: tuple[Region, ...],
    assumed: Sequence[Axes],
) -> Sets:
    """The axes over which carries of a while_loop differ between devices, its condition being known
    as well, and over which they are assumed to.
    """
    sets = [trace.varying_axes(Tracer(trace, atom)) for atom in operands]
    outputs = tuple([Value(atom.type) for atom in operands[: attrs["carry"]]])
    eqn = Eqn(get("while_loop"), tuple(operands), outputs, attrs, regions)
    found = VaryingAxes().operands(eqn, tuple(sets))
    return tuple([axes | more for axes, more in zip(found, assumed, strict=False)])


def with_token(traced: TracedRegion, parameter: int, result: int) -> TracedRegion:
    """The same with the token as a parameter and a result of the region, at these positions.

    A region without effects returns the token that it takes.
    """
    first = Value(TOKEN)
    before, after = traced.tokens or (first, first)
    params, results = list(traced.region.params), list(traced.region.results)
    params.insert(parameter, before)
    results.insert(result, after)
    region = replace(traced.region, params=tuple(params), results=tuple(results))
    return replace(traced, region=region, tokens=None)


def unify_captures(traced: Sequence[TracedRegion]) -> tuple[tuple[Region, ...], tuple[Atom, ...]]:
    """The regions with the same trailing parameters, and the outer atoms these stand for."""
    captures = tuple(dict.fromkeys([atom for t in traced for atom in t.captures]))

    def widened(t: TracedRegion) -> Region:
        if t.captures == captures:
            return t.region
        own = len(t.region.params) - len(t.captures)
        stand_ins = dict(zip(t.captures, t.region.params[own:], strict=True))
        trailing = [stand_ins.get(atom) or Value(atom.type) for atom in captures]
        return replace(t.region, params=(*t.region.params[:own], *trailing))

    return tuple([widened(t) for t in traced]), captures


def join(*types: ArrayType) -> ArrayType | None:
    """The common type of values of these types, or None: only weak types give way to others.

    >>> print(join(ArrayType("int64", (), True), ArrayType("float32")))
    f32[]
    >>> join(ArrayType("int32"), ArrayType("float32")) is None
    True
    """
    first, *others = types
    if all(t is first for t in others):  # most are
        return first
    strong = [t for t in types if not t.weak]
    if any(t.shape != types[0].shape for t in types) or len(set(strong)) > 1:
        return None
    if not strong:
        return ArrayType(result_type(*types), (), True)
    return strong[0] if result_type(*types) == strong[0].dtype else None


def cast_results(region: Region, types: Sequence[ArrayType]) -> Region:
    """The region with results cast to the dtypes of `types`."""
    eqns: list[Eqn] = []

    def converted(atom: Atom, needed: ArrayType) -> Atom:
        if atom.type.dtype == needed.dtype:
            return atom
        if isinstance(atom, Literal):
            return Literal.of(atom.value.item(), needed)
        if atom.type.weak and atom.type.dtype.kind in "iu" and needed.dtype.kind in "iu":
            atom = cast(atom, {"dtype": needed.dtype, "weak": True})  # a Python int must fit
        return cast(atom, {"dtype": needed.dtype})

    def cast(atom: Atom, attrs: Mapping[str, Any]) -> Value:
        eqns.append(application("cast", (atom,), attrs, user_source()))
        return eqns[-1].outputs[0]

    results = tuple([converted(a, t) for a, t in zip(region.results, types, strict=True)])
    if all(map(is_, results, region.results)):
        return region
    return replace(region, eqns=(*region.eqns, *eqns), results=results)
