"""How the instructions of a nest are run: stores forwarded, blocks chosen, temporaries placed.

A large nest runs block by block along one axis, all its instructions for one block before the next
block, so that intermediate values stay in the cache.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import gcd, prod

from lowering.buffer import Buffer
from lowering.host.arena import Workspace
from lowering.host.columns import by_columns, turn_short_folds
from lowering.host.evaluate import Evaluator
from lowering.host.hull import as_ranges
from lowering.host.mirrored import count_turns, mirror
from lowering.host.registers import (
    Instruction,
    Mirrored,
    Register,
    Temporary,
    View,
    innermost,
)
from lowering.host.stores import Overlaps, forward_stores, may_share, save_reads, write_early
from lowering.host.straight import straighten
from lowering.host.transposed import read_transposed
from lowering.host.turned_sources import turn_sources
from lowering.kernel import Predicate

BLOCK_BYTES = 1 << 19
"""About what each intermediate value of a block takes: several fit a second-level cache, and what
is read from memory is read for long enough that the next of it is foreseen."""

LARGE_BYTES, HUGE_BYTES = 1 << 20, 1 << 24
"""What the largest value of a nest takes at least that is run in blocks: where values are handed on
within it, and where its instructions do no more than read the same."""

GATHERED_BYTES = 1 << 22
"""Bytes of several arrays that a cache does not hold while elements are gathered by turns."""

STRIP, WIDE_STRIP = 32, 128
"""Elements of a strip: two cache lines of 32-bit numbers; and where all lines stay in the cache."""

LINE, SETS, WAYS = 64, 2048, 8
"""Bytes of a cache line, and the sets of lines that a second-level cache of 1 MiB has."""


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
    before = tuple(i for i in instructions if axis is not None and not _varies(i, axis))
    each = tuple(i for i in instructions if axis is None or _varies(i, axis))
    extent = 1 if axis is None else extents[axis]
    starts = place_temporaries(before, each, axis, length, workspace)
    before, each = by_columns(before), by_columns(each)
    return Schedule(before, each, axis, extent, length, starts, run.predicates)


def _varies(instruction: Instruction, axis: int) -> bool:
    output = instruction.output
    written = instruction.kind == "write" and output is not None and axis in output.dims
    return written or any(axis in register.dims for register in instruction.inputs)


# -- blocks ------------------------------------------------------------------------------------


def choose_block(
    instructions: Sequence[Instruction], extents: tuple[int, ...]
) -> tuple[int | None, int]:
    """The axis to run in blocks along, and the extent of a block.

    There is none for a nest that is small, or of which no instruction reads what another makes, or
    that has an instruction that needs all of every axis.
    """
    written = [i.output for i in instructions if i.kind == "write" and i.output is not None]
    if any(i.kind == "effect" for i in instructions) or not written:
        return None, 1
    largest = max(written, key=_nbytes)
    if _nbytes(largest) < LARGE_BYTES:
        return None, 1
    if (strip := _strip(instructions)) is not None:
        return strip
    if len(written) < 2 or (_nbytes(largest) < HUGE_BYTES and not _hands_on(instructions)):
        return None, 1
    if _gathers_by_turns(instructions):
        return None, 1
    blocks = max(2, _nbytes(largest) // BLOCK_BYTES)
    axes = [axis for axis in largest.dims if all(_keeps(i, axis) for i in instructions)]
    if sum(extents[axis] > 1 for axis in largest.dims) > 1:  # many short runs take longer than one
        touched = {r for i in instructions for r in (*i.inputs, i.output) if r is not None}
        fastest = {_fastest_axis(r) for r in touched if _nbytes(r) >= LARGE_BYTES // 2}
        axes = [axis for axis in axes if axis not in fastest | {_fastest_axis(largest)}]
    if not axes:
        return None, 1
    axis = next((a for a in axes if extents[a] >= blocks), max(axes, key=extents.__getitem__))
    length = -(-extents[axis] // blocks)
    return (axis, length) if length < extents[axis] else (None, 1)


def _hands_on(instructions: Sequence[Instruction]) -> bool:
    """Whether a large value is made by one instruction and read by a later one."""
    made: set[Register] = set()
    for each in instructions:
        if not made.isdisjoint(each.inputs):
            return True
        if each.output is not None and _nbytes(each.output) >= LARGE_BYTES:
            made.add(each.output)
    return False


def _gathers_by_turns(instructions: Sequence[Instruction]) -> bool:
    """Whether each block would gather elements from all over several arrays, which push each other
    out of the cache: all at once, they take half the time.
    """
    sources: dict[Buffer, int] = {}
    for each in instructions:
        for r in each.inputs:
            if isinstance(r, View) and r.shape and not r.dims and any(i.dims for i in each.inputs):
                sources[r.buffer] = _nbytes(r)
    return len(sources) > 1 and sum(sources.values()) >= GATHERED_BYTES


def _strip(instructions: Sequence[Instruction]) -> tuple[int, int] | None:
    """An axis along which a large array is written in order, while another is read across, and how
    much of it to work on at a time, so that lines of the one that is read stay in the cache.

    So it is where all of them would push each other out. Where they would not, strips still pay if
    nothing is read in order, for that takes longer in short pieces.
    """
    for each in instructions:
        if each.output is None or _nbytes(each.output) < LARGE_BYTES:
            continue
        axis = _fastest_axis(each.output)
        if axis is None or not all(_keeps(i, axis) for i in instructions):
            continue
        across = [r for r in _read_along(each, axis) if _is_across(r, axis)]
        kept = min((_lines_kept(_step(r, axis)) for r in across), default=0)
        extent = each.output.shape[each.output.dims[axis]]
        if across and 2 * extent > kept:
            return axis, max(STRIP, kept // 8)
        if across and not any(_reads_in_order(i, axis) for i in instructions):
            return axis, max(WIDE_STRIP, extent // (_nbytes(each.output) // BLOCK_BYTES))
    return None


def _read_along(instruction: Instruction, axis: int) -> list[View | Temporary]:
    """What it reads that has more than one element along an axis."""
    inputs = (r for r in instruction.inputs if isinstance(r, View | Temporary))
    return [r for r in inputs if axis in r.dims and r.shape[r.dims[axis]] > 1]


def _is_across(register: View | Temporary, axis: int) -> bool:
    return _fastest_axis(register) != axis and _step(register, axis) >= LINE


def _reads_in_order(instruction: Instruction, axis: int) -> bool:
    """Whether it writes elements in order along an axis, and so reads some."""
    output = instruction.output
    if output is None or _fastest_axis(output) != axis:
        return False
    return not all(_is_across(r, axis) for r in _read_along(instruction, axis))


def _step(register: View | Temporary, axis: int) -> int:
    """Bytes from an element to the next one along an axis."""
    dim = register.dims[axis]
    if isinstance(register, View):
        return abs(register.strides[dim])
    order = list(register.order or range(len(register.shape)))
    inner = order[order.index(dim) + 1 :]
    return register.dtype.itemsize * prod(register.shape[each] for each in inner)


def _lines_kept(step: int) -> int:
    """Lines at multiples of so many bytes that a second-level cache holds at a time."""
    lines, between = divmod(step, LINE)
    return WAYS * (SETS if between else SETS // gcd(lines, SETS))


def _fastest_axis(register: Register) -> int | None:
    """The axis along which elements lie next to each other."""
    fastest = innermost(register)
    return next((axis for axis, dim in register.dims.items() if dim == fastest), None)


def _nbytes(register: Register) -> int:
    return prod(register.shape) * register.dtype.itemsize


def _keeps(instruction: Instruction, axis: int) -> bool:
    """Whether a part of the output along the axis comes from the same part of the inputs."""
    if not _varies(instruction, axis):
        return True
    if any(isinstance(r, Mirrored) and r.dims.get(axis) in r.along for r in instruction.inputs):
        return False
    output = instruction.output
    return output is not None and axis in output.dims and axis not in instruction.whole_axes


# -- temporaries -------------------------------------------------------------------------------


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
