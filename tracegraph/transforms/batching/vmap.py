"""vmap: a function of one item applied to many at once."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np

from tracegraph import errors, tree
from tracegraph.arrays.array import Array
from tracegraph.arrays.creation import asarray
from tracegraph.arrays.device_calls import compiled
from tracegraph.arrays.eager import any_on_device
from tracegraph.control.regions import Tree, current_for, flatten_checked
from tracegraph.errors.tracebacks import entry_point
from tracegraph.ir.program import Atom, Program, Region
from tracegraph.ir.record import record, replace
from tracegraph.ir.types import ArrayType, type_of
from tracegraph.sharding.uniformity import check_uniform
from tracegraph.tracing.foreign import is_foreign
from tracegraph.tracing.parameters import parameters_of
from tracegraph.tracing.trace import Trace, trace_program, trace_region
from tracegraph.tracing.tracer import Tracer
from tracegraph.transforms.batching.batch import batch_region
from tracegraph.transforms.batching.flags import BatchedFlags
from tracegraph.transforms.batching.lanes import Batch, Lanes
from tracegraph.transforms.evaluate import evaluate

__all__ = ["vmap"]

Function = Callable[..., Any]
Axes = Any
"""An int, None, or a tree of them that is a prefix of arguments or results."""

P = ParamSpec("P")
R = TypeVar("R")


@entry_point
@errors.refuses(
    spmd_axis_name="lanes of vmap are never devices: shard maps a function over these",
    in_axis="it is called in_axes",
    out_axis="it is called out_axes",
    batch_size="the number of lanes is called axis_size",
)
def vmap(
    fun: Callable[P, R],
    in_axes: Axes = 0,
    out_axes: Axes = 0,
    axis_size: int | None = None,
    axis_name: str | None = None,
) -> Callable[P, R]:
    """A function that applies `fun` to each of many items, its lanes, in one program.

    Lane i gets element i of each mapped argument, and what it returns is element i of the results.
    It computes what a call for it alone would: a loop stops for each lane when its own condition
    does, and each lane takes its own branch.

    Args:
        fun: takes and returns trees of arrays and numbers. It is traced, so that a Python `if`
            cannot depend on values; calls that `jit` does not surround trace it each time.
        in_axes: the mapped axis of the positional arguments, from the end if negative; None for
            arguments that are the same in all lanes: numbers stay numbers, and anything else may
            be among them. A tuple with an entry for each argument, which may be a tree of axes for
            parts of it. Keyword arguments are mapped along axis 0.
        out_axes: where the lanes are in the results: an int, or a tree of them for parts of it;
            None for a result that no mapped argument changes.
        axis_size: the number of lanes, if no argument is mapped. It may be zero.
        axis_name: a name for the axis of the lanes, by which collectives such as `psum` combine
            them, as they do the devices of a mesh.

    Raises:
        NotCallableError: `fun` is not callable.
        VmapAxesError: the axes do not fit the arguments or the results.
        LaneCountError: mapped axes differ in extent, or there is none.
        OutAxesError: `out_axes` is None for a result that differs between lanes.
        LeafTypeError: a mapped argument, or a result, has a leaf that is not an array.
        BatchRuleError: `fun` applies an op of your own that has no batching rule.
        UniformityError: lanes may go different ways around a collective.

    >>> import numpy as np
    >>> vmap(np.dot)(np.ones((3, 2)), np.arange(6.0).reshape(3, 2))
    array([1., 5., 9.])
    >>> vmap(lambda x, y: x + y, in_axes=(0, None), out_axes=1)(np.arange(3), np.arange(2))
    array([[0, 1, 2],
           [1, 2, 3]])
    """
    if not callable(fun):
        raise errors.NotCallableError("vmap", "fun", fun)
    name: object = axis_name
    if not (name is None or isinstance(name, str)):
        got = errors.value_text(name)
        raise errors.VmapAxesError(f"axis_name must be a string, not {got}")
    count = None if axis_size is None else _axis_size(axis_size)

    @wraps(fun, updated=())
    @entry_point
    def vmapped(*args: Any, **kwargs: Any) -> Any:
        arguments = _arguments(fun, args, kwargs, in_axes, count)
        trace = current_for(arguments.leaves)
        if trace is not None:
            results, structure = _record(trace, fun, arguments, out_axes, axis_name)
            return tree.unflatten(structure, results)
        return _run(fun, arguments, out_axes, axis_name)

    setattr(vmapped, "is_mapped", True)  # noqa: B010 - functions have no such attribute
    return vmapped


@record
class _Arguments:
    """Arguments of one call, flat: leaves and the mapped axis of each, or None; the lanes."""

    leaves: list[Any]
    axes: list[int | None]
    paths: list[str]
    structure: tree.Structure
    count: int


def _axis_size(value: Any) -> int:
    try:
        count = operator.index(value)
    except TypeError:
        count = -1
    if count < 0 or isinstance(value, bool):
        got = errors.value_text(value)
        raise errors.VmapAxesError(f"axis_size must be an int of at least 0, not {got}")
    return count


def _arguments(
    fun: Function,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    in_axes: Axes,
    count: int | None,
) -> _Arguments:
    each = in_axes
    if in_axes is None or isinstance(in_axes, int):
        each = (in_axes,) * len(args)
    elif isinstance(in_axes, list):
        each = tuple(in_axes)
    if not isinstance(each, tuple) or len(each) != len(args):
        raise errors.VmapAxesError(
            "in_axes must be an int, None, or a tuple with an entry for each positional argument: "
            f"{errors.function_text(fun)} got {len(args)}, in_axes is {in_axes!r}{_entries(each)}"
        )
    names = [*parameters_of(fun).positional, *(f"args[{i}]" for i in range(len(args)))]
    axes: list[int | None] = []
    paths: list[str] = []
    for name, prefix, value in zip(names, each, args, strict=False):
        axes += _axes_of(fun, "in_axes", prefix, value, f"argument {name}")
        paths += tree.paths(tree.structure(value), name)
    for name in sorted(kwargs):
        paths += tree.paths(tree.structure(kwargs[name]), name)
    leaves, structure = tree.flatten((args, {name: kwargs[name] for name in sorted(kwargs)}))
    axes += [0] * (len(leaves) - len(axes))
    rows: list[tuple[str, ArrayType, int]] = []
    for i, (leaf, axis, path) in enumerate(zip(leaves, axes, paths, strict=True)):
        if axis is not None:
            if is_foreign(leaf):
                leaf = leaves[i] = asarray(leaf)
            type_ = _mapped_type(fun, leaf, path)
            what = f"{path} has type {type_}"
            place = _normalized(fun, "in_axes", axis, type_.ndim, what)
            axes[i] = place
            rows.append((path, type_, place))
    extents = {type_.shape[axis] for _, type_, axis in rows}
    if count is not None:
        extents.add(count)
    if len(extents) != 1:
        raise errors.LaneCountError(fun, rows, count)
    return _Arguments(leaves, axes, paths, structure, extents.pop())


def _entries(axes: Any) -> str:
    if not isinstance(axes, tuple):
        return ""
    return f", which has {len(axes)} entr{'y' if len(axes) == 1 else 'ies'}"


def _mapped_type(fun: Function, leaf: Any, path: str) -> ArrayType:
    try:
        return type_of(leaf)
    except (TypeError, OverflowError) as error:
        raise errors.LeafTypeError("vmap", path, error, None, fun) from None


def _axes_of(
    fun: Function, parameter: str, prefix: Axes, value: Any, what: str
) -> list[int | None]:
    """The axis for each leaf of a value."""
    of = errors.function_text(fun)
    try:
        found = tree.spread_prefix(prefix, value)
    except ValueError:
        shape = errors.structure_text(tree.structure(value))
        raise errors.VmapAxesError(
            f"{parameter} has {prefix!r} for {what} of {of}, whose tree is {shape}; give an int, "
            "None, or the same tree of them, where one may stand for a whole subtree"
        ) from None
    for axis in found:
        if axis is not None and (isinstance(axis, bool) or not isinstance(axis, int)):
            got = errors.value_text(axis)
            raise errors.VmapAxesError(
                f"{parameter} must hold ints and None, not {got}, which it has for {what} of {of}"
            )
    return found


def _normalized(fun: Function, parameter: str, axis: int, ndim: int, what: str) -> int:
    if not -ndim <= axis < ndim:
        instead = f": the lanes of it are at an axis from {-ndim} to {ndim - 1}"
        if parameter == "in_axes":
            has = f"has {ndim} ax{'i' if ndim == 1 else 'e'}s" if ndim else "has no axis to map"
            instead = (
                f", and {has}; give None for what all lanes share\n  in the call of "
                f"{errors.function_text(fun)}"
            )
        raise errors.VmapAxesError(f"{parameter} is {axis}, but {what}{instead}")
    return axis % ndim


def _run(fun: Function, arguments: _Arguments, out_axes: Axes, axis_name: str | None) -> Any:
    """Trace the call and run it now, where its Arrays are."""
    places = [
        i
        for i, (leaf, axis) in enumerate(zip(arguments.leaves, arguments.axes, strict=True))
        if axis is not None or type(leaf) is Array or isinstance(leaf, np.ndarray)
    ]
    leaves = [arguments.leaves[i] for i in places]
    structures = []

    def flat(*tracers: Any) -> Sequence[Any]:
        traced = list(arguments.leaves)
        for i, tracer in zip(places, tracers, strict=True):
            traced[i] = tracer
        trace = current_for(tracers)
        assert trace is not None
        given = replace(arguments, leaves=traced)
        results, structure = _record(trace, fun, given, out_axes, axis_name)
        structures.append(structure)
        return results

    name = getattr(fun, "__name__", "vmapped")
    if any_on_device(leaves):
        flat.__qualname__ = name  # in messages
        results = compiled(flat)(*leaves)
        return tree.unflatten(structures[0], results)
    program = trace_program(
        flat,
        [type_of(leaf) for leaf in leaves],
        name,
        lambda: [arguments.paths[place] for place in places],
    )
    return tree.unflatten(structures[0], evaluate(program, leaves))


def _record(
    trace: Trace, fun: Function, arguments: _Arguments, out_axes: Axes, axis_name: str | None
) -> tuple[list[Tracer], tree.Structure]:
    """Record a call for all lanes; its results, flat."""
    if axis_name in trace.axes:
        raise errors.VmapAxesError(f"axis_name is {axis_name!r}, which an axis around has already")
    lanes = Lanes(trace, arguments.count, BatchedFlags(axis_name))
    mapped = [
        _with_lanes_at(lanes, trace.read(leaf), axis, 0)
        for leaf, axis in zip(arguments.leaves, arguments.axes, strict=True)
        if axis is not None
    ]
    region, captures, returned, effects = _traced(trace, fun, arguments, mapped, axis_name)
    if axis_name is not None:
        _check_uniform(region, len(mapped), arguments, axis_name)
    operands = [*[Batch(x, True) for x in mapped], *[Batch(x, False) for x in captures]]
    if effects:
        operands.append(Batch(trace.token(), False))
    found = batch_region(lanes, region, operands)
    if effects:
        trace.last_token = Tracer(trace, found.pop().atom)
    values = tree.unflatten(returned.structure, range(len(found)))
    axes = _axes_of(fun, "out_axes", out_axes, values, "the result")
    paths = tree.paths(returned.structure, "result")
    results = []
    for value, type_, axis, path in zip(found, returned.types, axes, paths, strict=True):
        if axis is None:
            if value.is_batched:
                raise errors.OutAxesError(fun, path, type_)
            results.append(Tracer(trace, value.atom))
            continue
        what = f"{path} of {errors.function_text(fun)} is {type_} in each lane"
        place = _normalized(fun, "out_axes", axis, type_.ndim + 1, what)
        atom = lanes.spread(value.atom, value.is_batched)
        results.append(Tracer(trace, _with_lanes_at(lanes, atom, 0, place)))
    return results, returned.structure


def _check_uniform(region: Region, mapped: int, arguments: _Arguments, axis_name: str) -> None:
    """Check that lanes meet in each collective; the first `mapped` parameters differ between them.

    Raises:
        UniformityError: they may go different ways around one.
    """
    paths = _mapped_paths(arguments)

    def describe(number: int) -> str:
        return f"argument {paths[number]}, which differs between lanes"

    sets = [frozenset({axis_name} if i < mapped else ()) for i in range(len(region.params))]
    check_uniform(region, sets, describe)


def _mapped_paths(arguments: _Arguments) -> list[str]:
    pairs = zip(arguments.paths, arguments.axes, strict=True)
    return [path for path, axis in pairs if axis is not None]


def _traced(
    trace: Trace,
    fun: Function,
    arguments: _Arguments,
    mapped: Sequence[Atom],
    axis_name: str | None,
) -> tuple[Region, tuple[Atom, ...], Tree, bool]:
    """The region of one lane, optimized: its captures, what it returns, whether it has effects.

    With effects, the last parameter and result are the token.
    """
    returned: list[Tree] = []

    def call(*tracers: Tracer) -> Sequence[Any]:
        own = iter(tracers)
        leaves = [
            _shared(trace, leaf, path) if axis is None else next(own)
            for leaf, axis, path in zip(
                arguments.leaves, arguments.axes, arguments.paths, strict=True
            )
        ]
        args, kwargs = tree.unflatten(arguments.structure, leaves)
        returned.append(flatten_checked(fun(*args, **kwargs), "vmap", "result", fun))
        return returned[0].leaves

    from tracegraph.passes import optimize  # when first used: importing them takes 8 ms

    types = [atom.type.with_shape(atom.type.shape[1:]) for atom in mapped]
    mapped_paths = _mapped_paths(arguments)
    named = {} if axis_name is None else {axis_name: arguments.count}
    region, captures, tokens = trace_region(
        call,
        types,
        trace,
        lambda i: f"a lane of argument {mapped_paths[i]}",
        [trace.varying_axes(Tracer(trace, atom)).union(named) for atom in mapped],
        named,
    )
    if tokens is not None:
        before, after = tokens
        region = Region((*region.params, before), region.eqns, (*region.results, after))
    program = Program("lane", region, (), tokens is not None)
    return optimize(program, is_traced=True).body, captures, returned[0], tokens is not None


def _shared(trace: Trace, leaf: Any, path: str) -> Any:
    """What a lane gets of an argument without lanes: of a NumPy array, the traced constant."""
    if not isinstance(leaf, np.ndarray):
        return leaf
    return Tracer(trace, trace.read(leaf), f"argument {path}")


def _with_lanes_at(lanes: Lanes, x: Atom, axis: int, place: int) -> Atom:
    """The operand with an axis moved to another place."""
    if axis == place:
        return x
    order = [i for i in range(x.type.ndim) if i != axis]
    order.insert(place, axis)
    return lanes.emit("transpose", x, axes=tuple(order))
