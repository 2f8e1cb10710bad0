"""Ops with regions: cond, switch, while_loop, scan.

Regions are closed: values of the region around them are passed as trailing operands, the captures,
which all regions of an op share (`ir/control_forms.py`). Types agree when dtype and shape do;
whether a type is weak matters only to the promotion of what is traced next.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tracegraph import limits
from tracegraph.dtypes import BOOL
from tracegraph.ir.control_forms import split
from tracegraph.ir.derivative import Structural
from tracegraph.ir.interpret import run_region
from tracegraph.ir.op import Control, Op, register
from tracegraph.ir.program import Region
from tracegraph.ir.types import ArrayType, scalar_type

Arrays = tuple[np.ndarray[Any, Any], ...]
Types = tuple[ArrayType, ...]


def _listed(types: Sequence[ArrayType]) -> str:
    return f"({', '.join(map(str, types))})"


def _agree(what: str, got: Sequence[ArrayType], needed: Sequence[ArrayType]) -> None:
    plain = [(t.dtype, t.shape) for t in got]
    if plain != [(t.dtype, t.shape) for t in needed]:
        raise TypeError(f"{what} must be {_listed(needed)}, not {_listed(got)}")


def _takes(role: str, region: Region, types: Sequence[ArrayType]) -> None:
    _agree(f"parameters of {role}", [p.type for p in region.params], types)


_TRUTH = scalar_type(BOOL)


def _count(regions: Sequence[Region], needed: int) -> None:
    if len(regions) != needed:
        raise TypeError(f"needs {needed} regions, not {len(regions)}")


def _meet(branches: Sequence[Types]) -> Types:
    """The types of the results: weak where they are weak in all branches."""
    return tuple(
        column[0] if all(t.weak for t in column) else column[0].strong()
        for column in zip(*branches, strict=True)
    )


def _branch_types(regions: Sequence[Region], captures: Types) -> Types:
    for i, region in enumerate(regions):
        _takes(f"branch {i}", region, captures)
        _agree(f"results of branch {i}", region.result_types, regions[0].result_types)
    return _meet([region.result_types for region in regions])


def _cond_type(pred: ArrayType, *captures: ArrayType, regions: Sequence[Region] = ()) -> Types:
    _count(regions, 2)
    _agree("the predicate", [pred], [_TRUTH])
    return _branch_types(regions, captures)


def _cond(pred: Any, *captures: Any, regions: Sequence[Region]) -> Arrays:
    return run_region(regions[0] if pred else regions[1], captures)


def _switch_type(index: ArrayType, *captures: ArrayType, regions: Sequence[Region] = ()) -> Types:
    if not regions:
        raise TypeError("needs at least one region")
    if index.shape != () or index.dtype not in (np.int32, np.int64):
        raise TypeError(f"the index must be i32[] or i64[], not {index}")
    return _branch_types(regions, captures)


def _switch(index: Any, *captures: Any, regions: Sequence[Region]) -> Arrays:
    return run_region(regions[min(max(int(index), 0), len(regions) - 1)], captures)


def _while_type(
    *operands: ArrayType,
    carry: int,
    regions: Sequence[Region] = (),
    trip_count: int | None = None,
    max_steps: int | None = None,
    counted: bool = False,
) -> Types:
    """`trip_count` is the number of iterations where it is known, `max_steps` an upper bound.

    A `counted` loop is one of a derivative: carry 0 is the number of the iteration, from 0, and the
    condition `less(carry 0, n)`.
    """
    _count(regions, 2)
    condition, body = regions
    _takes("the condition", condition, operands)
    _takes("the body", body, operands)
    _agree("the result of the condition", condition.result_types, [_TRUTH])
    _agree("results of the body", body.result_types, operands[:carry])
    for name, count in (("trip_count", trip_count), ("max_steps", max_steps)):
        if count is not None and count < 0:
            raise TypeError(f"{name} must not be negative: got {count}")
    return tuple(p.type for p in body.params[:carry])


def _while(*operands: Any, carry: int, regions: Sequence[Region], **known: Any) -> Arrays:
    condition, body = regions
    state, captures = split(operands, carry)
    while run_region(condition, (*state, *captures))[0]:
        limits.check()
        state = run_region(body, (*state, *captures))
    return state


def _scan_type(
    *operands: ArrayType,
    carry: int,
    xs: int,
    length: int,
    reverse: bool,
    regions: Sequence[Region] = (),
) -> Types:
    _count(regions, 1)
    (body,) = regions
    init, stacked, captures = split(operands, carry, xs)
    for i, x in enumerate(stacked):
        if x.shape[:1] != (length,):
            raise TypeError(f"xs operand {i} must have leading extent {length}: got {x}")
    slices = [x.with_shape(x.shape[1:]) for x in stacked]
    _takes("the body", body, [*init, *slices, *captures])
    _agree("carry results of the body", body.result_types[:carry], init)
    ys = (ArrayType(t.dtype, (length, *t.shape)) for t in body.result_types[carry:])
    return (*(p.type for p in body.params[:carry]), *ys)


def _scan(
    *operands: Any,
    carry: int,
    xs: int,
    length: int,
    reverse: bool,
    regions: Sequence[Region],
) -> Arrays:
    (body,) = regions
    state, stacked, captures = split(operands, carry, xs)
    ys = tuple(np.empty((length, *t.shape), t.dtype) for t in body.result_types[carry:])
    for i in reversed(range(length)) if reverse else range(length):
        limits.check()
        results = run_region(body, (*state, *(x[i] for x in stacked), *captures))
        state = results[:carry]
        for y, value in zip(ys, results[carry:], strict=True):
            y[i] = value
    return (*state, *ys)


def _control(
    name: str, doc: str, type_rule: Callable[..., Any], reference: Callable[..., Any]
) -> Op:
    """Register an op with regions, which has tests of its own instead of samples."""
    form, derivative = Control(), Structural()
    return register(Op(name, doc, type_rule, reference, form, lambda: (), derivative=derivative))


cond = _control(
    "cond",
    "The first region's results where the predicate holds, else the second's.",
    _cond_type,
    _cond,
)

switch = _control(
    "switch",
    "The results of the region that the index selects, clamped to the number of regions.",
    _switch_type,
    _switch,
)

while_loop = _control(
    "while_loop",
    "The carry after running the body while the condition holds, which is tested first.",
    _while_type,
    _while,
)

scan = _control(
    "scan",
    "The carry after running the body on each slice of the xs, and its stacked results.",
    _scan_type,
    _scan,
)
