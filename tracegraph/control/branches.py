"""Branches: cond and switch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from tracegraph import errors, tree
from tracegraph.control.ownership import call_owned, owned
from tracegraph.control.regions import (
    TracedRegion,
    Tree,
    Types,
    cast_results,
    current_for,
    flatten_checked,
    join,
    require_callable,
    trace_tree,
    unify_captures,
    with_token,
)
from tracegraph.control.schedules import BranchSchedule, branch_schedule
from tracegraph.dtypes import BOOL
from tracegraph.errors.tracebacks import entry_point
from tracegraph.ir.effects import TOKEN
from tracegraph.ir.op import Op, get
from tracegraph.ir.program import Atom, Hints, Literal
from tracegraph.ir.types import ArrayType, type_of
from tracegraph.ir.varying import Axes
from tracegraph.ops import control as ops
from tracegraph.tracing.trace import Trace, bind, cast
from tracegraph.tracing.tracer import Tracer

__all__ = ["cond", "switch"]

Function = Callable[..., Any]
_R = TypeVar("_R")


@entry_point
def cond(
    pred: Any,
    true_fun: Callable[..., _R],
    false_fun: Callable[..., _R],
    *operands: Any,
    schedule: BranchSchedule | None = None,
) -> _R:
    """``true_fun(*operands)`` if `pred` is true, else ``false_fun(*operands)``.

    Args:
        pred: a scalar of any boolean or numeric dtype; non-zero, NaN included, is true.
        true_fun: takes the operands and returns a pytree of arrays and scalars.
        false_fun: the same. If traced, both must return one structure with the same shapes and
            dtypes; Python scalars take the dtype of the other result.
        *operands: pytrees. The functions may also use any array around them. A function may write
            to its operands, which are its own: those given stay as they are, and what it returns
            shares no memory with them.
        schedule: ``"conditional"``: a node of the graph chooses the branch; ``"predicated"``: the
            kernels of both branches are launched, and those of the branch not taken return at once;
            None: the one that is estimated to be faster.

    Only the function taken runs. While a function is traced, both are traced.

    Raises:
        PredicateError: `pred` is not a scalar number.
        ScheduleError: there is no such `schedule`.
        UnschedulableError: lowered, a branch cannot be predicated: it has a loop or a product.
        NotCallableError: `true_fun` or `false_fun` is not callable.
        LeafTypeError: an operand, or what a function returned, has a leaf that is not an array.
        StructureError: traced, the functions return different structures.
        LeafMismatchError: traced, the functions return different types.

    >>> cond(3 > 2, lambda x: x + 1, lambda x: x - 1, 10)
    11
    """
    named = {"true_fun": true_fun, "false_fun": false_fun}
    require_callable("cond", named, _operand_names(operands))
    hints = branch_schedule("cond", schedule)
    type_ = _number_type(pred)
    if type_ is None or type_.shape != ():
        raise errors.PredicateError("cond", pred, type_)
    flat_operands = flatten_checked(operands, "cond", "operands")
    trace = current_for((pred, *flat_operands.leaves))
    if trace is None:
        chosen = true_fun if np.asarray(pred) != 0 else false_fun
        return call_owned(chosen, flat_operands.structure, flat_operands.leaves)  # type: ignore[no-any-return]
    return _record(trace, ops.cond, _truth(trace, pred), named, flat_operands, hints)  # type: ignore[no-any-return]


@entry_point
def switch(
    index: Any,
    branches: Sequence[Callable[..., _R]],
    *operands: Any,
    schedule: BranchSchedule | None = None,
) -> _R:
    """``branches[index](*operands)``, with the index clamped to the number of branches.

    Args:
        index: an integer scalar, not a bool.
        branches: functions as `cond` takes them, in a list or tuple; a single one is just called.
        *operands: pytrees, as in `cond`.
        schedule: as in `cond`.

    Raises:
        IntegerError: `index` is not an integer scalar.
        ScheduleError, UnschedulableError: as in `cond`.
        NoBranchesError: `branches` is empty, or not a list or tuple.
        NotCallableError: a branch is not callable.
        LeafTypeError: an operand, or what a branch returned, has a leaf that is not an array.
        StructureError: traced, the branches return different structures.
        LeafMismatchError: traced, the branches return different types.

    >>> switch(7, [lambda x: x, lambda x: -x], 2.0)
    -2.0
    """
    if not isinstance(branches, (list, tuple)) or not branches:
        raise errors.NoBranchesError(branches)
    named = {f"branches[{i}]": branch for i, branch in enumerate(branches)}
    require_callable("switch", named, _operand_names(operands))
    hints = branch_schedule("switch", schedule)
    type_ = _number_type(index)
    if type_ is None or type_.shape != () or type_.dtype.kind not in "iu":
        raise errors.IntegerError("switch", "index", index, type_)
    given = flatten_checked(operands, "switch", "operands")
    trace = current_for((index, *given.leaves))
    if trace is None or len(branches) == 1:
        chosen = branches[0 if trace is not None else min(max(int(index), 0), len(branches) - 1)]
        return call_owned(chosen, given.structure, given.leaves)  # type: ignore[no-any-return]
    number = _branch_number(trace, index, len(branches))
    return _record(trace, ops.switch, number, named, given, hints)  # type: ignore[no-any-return]


def _operand_names(operands: Sequence[Any]) -> list[str]:
    return [f"operands[{i}]" for i in range(len(operands))]


def _number_type(value: Any) -> ArrayType | None:
    try:
        return type_of(value)
    except (TypeError, OverflowError):
        return None


def _truth(trace: Trace, pred: Any) -> Atom:
    atom = trace.read(pred)
    if atom.type.dtype == np.bool_:
        return atom
    if isinstance(atom, Literal):
        return Literal.of(atom.value != 0, ArrayType(BOOL))
    return trace.read(bind(trace, get("not_equal"), [pred, atom.type.dtype.type(0)], {}))


def _branch_number(trace: Trace, index: Any, count: int) -> Atom:
    """The index in a dtype that the op takes; u64 is clamped before it is cast to i64."""
    dtype = type_of(index).dtype
    if dtype == np.uint64:
        index = bind(trace, get("minimum"), [index, np.uint64(count - 1)], {})
    atom = trace.read(index)
    return atom if dtype == np.int32 else cast(trace, atom, np.dtype(np.int64))


def _record(
    trace: Trace,
    op: Op,
    selector: Atom,
    named: Mapping[str, Function],
    operands: Tree,
    hints: Hints,
) -> Any:
    atoms = [trace.read(leaf) for leaf in operands.leaves]
    types = [atom.type for atom in atoms]
    varying = list[Axes]()
    if trace.axes:
        selects = trace.varying_axes(Tracer(trace, selector))
        varying += [selects | trace.varying_axes(Tracer(trace, atom)) for atom in atoms]

    def traced(function: Function) -> TracedRegion:
        def call(leaves: Sequence[Any]) -> Any:
            return function(*tree.unflatten(operands.structure, owned(leaves)))

        try:
            return trace_tree(call, types, trace, op.name, function, varying)
        except errors.EndlessTraceError:
            raise
        except RecursionError:
            raise errors.EndlessTraceError(op.name, function) from None

    branches = [traced(function) for function in named.values()]
    results = _joined(op.name, named, branches)
    structure, count = branches[0].structure, len(results)
    effects = any(branch.tokens for branch in branches)
    if effects:
        branches = [with_token(branch, len(atoms), count) for branch in branches]
        atoms.append(trace.token())
        results = (*results, TOKEN)
    regions, captures = unify_captures(branches)
    regions = tuple(cast_results(region, results) for region in regions)
    outputs = trace.record(op, (selector, *atoms, *captures), {}, regions, hints)
    if effects:
        trace.last_token = outputs[count]
    return tree.unflatten(structure, outputs[:count])


def _joined(
    construct: str, named: Mapping[str, Function], branches: Sequence[TracedRegion]
) -> Types:
    """The common types of the branches' results."""
    structures = [branch.structure for branch in branches]
    if any(structure != structures[0] for structure in structures):
        pairs = list(zip(_labels(named), structures, strict=True))
        differing = [pair for pair in pairs if pair[1] != structures[0]]
        problem = "the branches must return one structure"
        raise errors.StructureError(construct, problem, [pairs[0], *differing], "result")
    leaves = list(zip(*[branch.types for branch in branches], strict=True))
    joined = [join(*leaf) for leaf in leaves]
    types = tuple([met for met in joined if met is not None])
    if len(types) < len(joined):
        paths = tree.paths(structures[0], "result")
        mismatches = [
            (path, list(zip(named, leaf, strict=True)))
            for path, leaf, met in zip(paths, leaves, joined, strict=True)
            if met is None
        ]
        raise errors.LeafMismatchError(
            construct, "the branches must return the same types", _labels(named), mismatches
        )
    return types


def _labels(named: Mapping[str, Function]) -> list[str]:
    """What errors call the branches."""
    return [f"{role} {errors.function_text(function)}" for role, function in named.items()]
