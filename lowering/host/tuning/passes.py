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
from lowering.host.instructions import Instruction, Mirrored, Register, Temporary
from lowering.host.tuning.blocking import choose_block, varies
from lowering.host.tuning.contiguous_ranges import as_ranges
from lowering.host.tuning.layout_propagation import turn_sources
from lowering.host.tuning.reversed_chains import count_turns, mirror
from lowering.host.tuning.reversed_views import straighten
from lowering.host.tuning.short_rows import by_columns, turn_short_folds
from lowering.host.tuning.store_forwarding import (
    Overlaps,
    forward_stores,
    may_share,
    save_reads,
    write_early,
)
from lowering.host.tuning.transposed_stores import read_transposed
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
    ways = filter(None, (run.instructions, mirror(run.instructions)))
    straight = [straighten(save_reads(each, overlaps), overlaps) for each in ways]
    instructions = min(straight, key=count_turns, default=[])
    instructions = turn_short_folds(read_transposed(instructions, overlaps))
    instructions = turn_sources(instructions, overlaps)
    instructions = write_early(forward_stores(instructions, overlaps), overlaps)
    extents = run.extents
    ranges = as_ranges(instructions, extents, run.spare) if run.spare else None
    if ranges is not None:
        instructions, extents = ranges
    axis, length = choose_block(instructions, extents)
    before = tuple(i for i in instructions if axis is not None and not varies(i, axis))
    each = tuple(i for i in instructions if axis is None or varies(i, axis))
    extent = 1 if axis is None else extents[axis]
    starts = place_temporaries(before, each, axis, length, workspace)
    before, each = by_columns(before), by_columns(each)
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
        elif isinstance(register, Mirrored):
            yield register.base


def _may_hold(instruction: Instruction, register: Temporary) -> bool:
    """Whether the output may be the memory of a register that is read for the last time."""
    output = instruction.output
    assert output is not None
    mirrored = any(isinstance(r, Mirrored) and r.base is register for r in instruction.inputs)
    return instruction.elementwise and may_share(register, output) and not mirrored


def block_shape(register: Register, axis: int | None, length: int) -> tuple[int, ...]:
    """The shape of the part of a register that one block needs."""
    if axis is None or axis not in register.dims:
        return register.shape
    dim = register.dims[axis]
    return (*register.shape[:dim], length, *register.shape[dim + 1 :])
