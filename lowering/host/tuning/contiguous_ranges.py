"""Windows of rows as one range: from the first to the last element, what lies between included.

NumPy spends as much on the start of a row as on hundreds of elements. Where the elements between
the rows are written again later, they may just as well be computed along, as nonsense.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from math import prod

from lowering.host import numpy_calls as functions
from lowering.host import strided_views as windows
from lowering.host.access_maps import access_map
from lowering.host.array_names import is_all
from lowering.host.evaluate import Evaluator
from lowering.host.instructions import Instruction, NumpyValue, Temporary, View
from lowering.plan.buffer import Buffer
from lowering.plan.kernel import MapNest, Nest
from lowering.plan.nest_analysis import nest_reads

WASTE = 1.25
"""How many times as many elements a range may have as the window."""


def overwritten_whole(nest: Nest, overlaps: Callable[[Buffer, Buffer], bool]) -> frozenset[Buffer]:
    """The buffers of which a nest writes all elements and reads none.

    There are none where that does not hold for all that it writes to.
    """
    if not isinstance(nest, MapNest) or nest.signals or 0 in nest.space:
        return frozenset()
    targets = frozenset(store.buffer for store in nest.stores)
    if any(overlaps(target, read) for read in nest_reads(nest) for target in targets):
        return frozenset()
    run = Evaluator(nest.space)
    for store in nest.stores:
        where = access_map(store.buffer, store.indices, run.extents, run.axes_of)
        if store.guard is not None or not where.fits(store.buffer.type.size):
            return frozenset()
        if not is_all(windows.window(store.buffer, where, run.extents)):
            return frozenset()
    return targets


def as_contiguous_ranges(
    instructions: Sequence[Instruction], extents: tuple[int, ...], overwritten: frozenset[Buffer]
) -> tuple[list[Instruction], tuple[int, ...]] | None:
    """The same on ranges, and the extent of these; None where that is impossible or wasteful.

    Elements of the buffers in `overwritten` that are not the nest's own may be overwritten.
    """
    registers = dict.fromkeys(r for i in instructions for r in (*i.inputs, i.output) if r)
    steps = {_steps(r) for r in registers if isinstance(r, View) and r.shape}
    if len(extents) < 2 or len(steps) != 1 or not all(map(_may_run_on, instructions)):
        return None
    (strides,) = steps
    if strides[-1] != 1 or any(
        strides[a] < strides[a + 1] * extents[a + 1] for a in range(len(extents) - 1)
    ):
        return None
    length = 1 + sum((n - 1) * step for n, step in zip(extents, strides, strict=True))
    full = all(not r.shape or (r.shape == extents and _may_grow(r)) for r in registers)
    if not full or length > WASTE * prod(extents) or not _is_overwritten(instructions, overwritten):
        return None
    ranges = {r: _range(r, length) for r in registers}
    changed = [
        replace(i, inputs=tuple(map(ranges.__getitem__, i.inputs)), output=ranges[i.output])
        for i in instructions
        if i.output is not None
    ]
    return changed, (length,)


def _may_run_on(instruction: Instruction) -> bool:
    """Whether it may compute more elements, or makes a number of numbers."""
    registers = (*instruction.inputs, instruction.output)
    numbers = all(register is not None and not register.shape for register in registers)
    return functions.is_pointwise(instruction) or (instruction.kind == "write" and numbers)


def _may_grow(register: NumpyValue) -> bool:
    return isinstance(register, View | Temporary)


def _steps(view: View) -> tuple[int, ...]:
    return tuple(stride // view.dtype.itemsize for stride in view.strides)


def _is_overwritten(instructions: Iterable[Instruction], overwritten: frozenset[Buffer]) -> bool:
    return all(i.output.buffer in overwritten for i in instructions if isinstance(i.output, View))


def _range(register: NumpyValue, length: int) -> NumpyValue:
    if not register.shape:
        return register
    dtype, dims = register.dtype, {0: 0}
    if isinstance(register, View):
        step = (dtype.itemsize,)
        return View(dtype, (length,), dims, register.buffer, step, register.offset)
    return Temporary(dtype, (length,), dims)
