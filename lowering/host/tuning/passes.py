"""How the instructions of a nest are run: stores forwarded, blocks chosen, temporaries placed.

A large nest runs block by block along one axis, all its instructions for one block before the next
block, so that intermediate values stay in the cache.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from lowering.host.arena import Workspace
from lowering.host.evaluate import Evaluator
from lowering.host.instructions import Instruction, NumpyValue, ReversedTemporary, Temporary
from lowering.host.tuning.blocking import choose_block, varies
from lowering.host.tuning.contiguous_ranges import as_contiguous_ranges
from lowering.host.tuning.layout_propagation import propagate_layouts
from lowering.host.tuning.reversed_chains import chains_forwards, count_reversals
from lowering.host.tuning.reversed_views import copy_reversed
from lowering.host.tuning.short_rows import columnwise, copy_short_folds
from lowering.host.tuning.store_forwarding import (
    Overlaps,
    compute_in_place,
    forward_stores,
    may_share,
    save_overwritten,
)
from lowering.host.tuning.transposed_stores import read_stored_copies
from lowering.plan.kernel import Predicate


@dataclass(frozen=True, slots=True, eq=False)
class Schedule:
    """What one nest runs: `before` once, then `each` for every block of `length` along `axis`.

    `starts` places the temporaries in the workspace. Without an axis there is one block. All of it
    runs if the `predicates` hold.
    """

    before: tuple[Instruction, ...]
    each: tuple[Instruction, ...]
    axis: int | None
    extent: int
    length: int
    starts: Mapping[Temporary, int]
    predicates: tuple[Predicate, ...] = ()


def schedule(run: Evaluator, overlaps: Overlaps, workspace: Workspace) -> Schedule:
    """Choose where values live and in which blocks they are made.

    `overlaps` tells of two buffers whether they share memory.
    """
    ways = filter(None, (run.instructions, chains_forwards(run.instructions)))
    straight = [copy_reversed(save_overwritten(each, overlaps), overlaps) for each in ways]
    instructions = min(straight, key=count_reversals, default=[])
    instructions = copy_short_folds(read_stored_copies(instructions, overlaps))
    instructions = propagate_layouts(instructions, overlaps)
    instructions = compute_in_place(forward_stores(instructions, overlaps), overlaps)
    extents = run.extents
    ranges = (
        as_contiguous_ranges(instructions, extents, run.overwritten) if run.overwritten else None
    )
    if ranges is not None:
        instructions, extents = ranges
    axis, length = choose_block(instructions, extents)
    before = tuple(i for i in instructions if axis is not None and not varies(i, axis))
    each = tuple(i for i in instructions if axis is None or varies(i, axis))
    extent = 1 if axis is None else extents[axis]
    starts = place_temporaries(before, each, axis, length, workspace)
    before, each = columnwise(before), columnwise(each)
    return Schedule(before, each, axis, extent, length, starts, run.predicates)


def place_temporaries(
    before: Sequence[Instruction],
    each: Sequence[Instruction],
    axis: int | None,
    length: int,
    workspace: Workspace,
) -> dict[Temporary, int]:
    """The start of each temporary in the workspace; memory is used again after the last use."""
    order = (*before, *each)
    last = {register: i for i, made in enumerate(order) for register in _temporaries(made)}
    for made in before:  # what all blocks read lives as long as the nest
        if isinstance(made.output, Temporary):
            last[made.output] = len(order)
    starts: dict[Temporary, int] = {}
    for position, made in enumerate(order):
        dying = [r for r in dict.fromkeys(_temporaries(made)) if last[r] == position]
        if isinstance(made.output, Temporary):
            heir = next((r for r in dying if _may_hold(made, r)), None)
            if heir is not None:
                starts[made.output] = starts[heir]
                dying.remove(heir)
            else:
                shape = block_shape(made.output, axis, length)
                size = prod(shape) * made.output.dtype.itemsize
                starts[made.output] = workspace.take(size)
            if made.output not in last:
                dying.append(made.output)
        for register in dying:
            workspace.give_back(starts[register])
    for register in {r for r, at in last.items() if at == len(order)}:
        workspace.give_back(starts[register])
    return starts


def _temporaries(instruction: Instruction) -> Iterator[Temporary]:
    """What an instruction reads."""
    for register in instruction.inputs:
        if isinstance(register, Temporary):
            yield register
        elif isinstance(register, ReversedTemporary):
            yield register.base


def _may_hold(instruction: Instruction, register: Temporary) -> bool:
    """Whether the output may be the memory of a register that is read for the last time."""
    output = instruction.output
    assert output is not None
    mirrored = any(
        isinstance(r, ReversedTemporary) and r.base is register for r in instruction.inputs
    )
    return instruction.elementwise and may_share(register, output) and not mirrored


def block_shape(register: NumpyValue, axis: int | None, length: int) -> tuple[int, ...]:
    """The shape of the part of a register that one block needs."""
    if axis is None or axis not in register.dims:
        return register.shape
    dim = register.dims[axis]
    return (*register.shape[:dim], length, *register.shape[dim + 1 :])
