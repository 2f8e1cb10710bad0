"""Contiguous over-write range: a window of rows is computed as one range, the gaps included.

To start a row costs NumPy as much as hundreds of elements. The elements in the gaps are dead: later
nests overwrite them. So one call may compute them as well, with meaningless values.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import prod

from lowering.host.evaluation import strided_views
from lowering.host.evaluation.access_maps import access_map
from lowering.host.evaluation.axis_dependence import AxisDependence
from lowering.host.evaluation.hazards import Overlaps
from lowering.host.evaluation.instructions import Instruction, NumpyValue, Temporary, View
from lowering.host.evaluation.nest_program import NestProgram
from lowering.host.source.array_names import is_all
from lowering.host.tuning.instructions.pointwise import is_pointwise
from lowering.plan.nests.analysis import nest_reads
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.kernel import MapNest, Nest

WASTE = 1.25
"""Most elements of a range, relative to the window: a bound on wasted work, not an optimum."""


def overwritten_whole(nest: Nest, overlaps: Overlaps) -> frozenset[Buffer]:
    """The buffers that a nest writes whole and does not read; none unless that holds for all it
    writes.
    """
    if not isinstance(nest, MapNest) or nest.signals or 0 in nest.space:
        return frozenset()
    targets = frozenset(store.buffer for store in nest.stores)
    if any(overlaps(target, read) for read in nest_reads(nest) for target in targets):
        return frozenset()
    axes_of = AxisDependence(nest.space)
    for store in nest.stores:
        where = access_map(store.buffer, store.indices, nest.space, axes_of)
        if store.guard is not None or not where.fits(store.buffer.type.size):
            return frozenset()
        if not is_all(strided_views.window(store.buffer, where, nest.space)):
            return frozenset()
    return targets


def compute_dead_elements(program: NestProgram, overlaps: Overlaps) -> NestProgram:
    """The program on contiguous ranges where the gaps are dead."""
    if not program.overwritten:
        return program
    given = (program.instructions, program.extents, program.overwritten)
    found = as_contiguous_ranges(*given)
    if found is None:
        return program
    instructions, extents = found
    return replace(program, instructions=tuple(instructions), extents=extents)


def as_contiguous_ranges(
    instructions: Sequence[Instruction], extents: tuple[int, ...], overwritten: frozenset[Buffer]
) -> tuple[list[Instruction], tuple[int, ...]] | None:
    """The instructions on ranges, and the extent of these; None if impossible or wasteful.

    Dead elements are those of the buffers in `overwritten`.
    """
    values = dict.fromkeys(r for i in instructions for r in (*i.inputs, i.output) if r)
    steps = {_steps(r) for r in values if isinstance(r, View) and r.shape}
    if len(extents) < 2 or len(steps) != 1 or not all(map(_may_run_on, instructions)):
        return None
    (strides,) = steps
    if strides[-1] != 1 or any(
        strides[a] < strides[a + 1] * extents[a + 1] for a in range(len(extents) - 1)
    ):
        return None
    length = 1 + sum((n - 1) * step for n, step in zip(extents, strides, strict=True))
    full = all(not r.shape or (r.shape == extents and _may_grow(r)) for r in values)
    if not full or length > WASTE * prod(extents) or not _is_overwritten(instructions, overwritten):
        return None
    ranges = {r: _range(r, length) for r in values}
    changed = [
        replace(i, inputs=tuple(map(ranges.__getitem__, i.inputs)), output=ranges[i.output])
        for i in instructions
        if i.output is not None
    ]
    return changed, (length,)


def _may_run_on(instruction: Instruction) -> bool:
    """Whether it may compute the gaps as well, or computes a scalar from scalars."""
    values = (*instruction.inputs, instruction.output)
    numbers = all(value is not None and not value.shape for value in values)
    return is_pointwise(instruction) or (instruction.kind == "write" and numbers)


def _may_grow(value: NumpyValue) -> bool:
    return isinstance(value, View | Temporary)


def _steps(view: View) -> tuple[int, ...]:
    return tuple(stride // view.dtype.itemsize for stride in view.strides)


def _is_overwritten(instructions: Iterable[Instruction], overwritten: frozenset[Buffer]) -> bool:
    return all(i.output.buffer in overwritten for i in instructions if isinstance(i.output, View))


def _range(value: NumpyValue, length: int) -> NumpyValue:
    if not value.shape:
        return value
    dtype, dims = value.dtype, {0: 0}
    if isinstance(value, View):
        step = (dtype.itemsize,)
        return View(dtype, (length,), dims, value.buffer, step, value.offset)
    return Temporary(dtype, (length,), dims)
