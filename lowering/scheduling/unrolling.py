"""Loop unrolling: the body several times in one iteration, or each step once without a loop.

    copy 0   the body; it stores to flag 0 whether the loop goes on
    copy j   the body, predicated on flag j - 1; it stores flag j, and clears it if it is skipped

A copy reads the flag of the copy before it and stores its own: the blocks of a kernel start at
different times, so none may store a flag that it reads. Where the number of steps is known, no copy
is skipped and there are no flags.

Carries that are not updated in place rotate through buffers (see `buffer_rotation`). The moves that
are left are made once, at the end; where copies may be skipped, the last copy that runs stores how
far the buffers have rotated.

A loop keeps one body until its nodes are made: nothing before that has to look at the copies.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from lowering.draft.context import Context
from lowering.draft.draft import Draft
from lowering.draft.draft_nodes import (
    Block,
    BodyCopy,
    DraftKernel,
    DraftLoop,
    DraftNode,
    FinishedNode,
    WrittenOut,
    blocks,
    is_written_out,
)
from lowering.plan.construct import Inlined, Part
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.kernel import MapNest, Nest, Predicate, ReduceNest, RowNest, Store
from lowering.scheduling.buffer_rotation import Rotation, rotation_of
from lowering.scheduling.induction import counters, counting
from lowering.scheduling.predication import (
    ConditionRewrites,
    predicated,
    rewritten_nest,
    rewritten_node,
)
from tracegraph.dtypes import BOOL
from tracegraph.generated.dataclass import dataclass
from tracegraph.ir.record import replace
from tracegraph.ir.scalar import const
from tracegraph.ir.types import scalar_type

POSITION = np.dtype(np.int32)
"""The dtype of the buffer that holds how far carries have rotated."""


@dataclass(frozen=True)
class Copies:
    """Copies of a body in a row.

    If `skipping`, each copy is the whole body of `rotation`. Otherwise each has the nodes of
    `each`, and the last one counts for all in its `counters`.
    """

    rotation: Rotation
    condition: int
    skipping: bool
    each: tuple[DraftNode, ...]
    counters: frozenset[DraftNode]
    count: int = 1

    @cached_property
    def once(self) -> tuple[DraftNode, ...]:
        """The nodes that all copies have together."""
        rotation = self.rotation
        closing = rotation.closing(rotation.moves(self.count))
        return (*[node for node in rotation.body if node in self.counters], *closing)

    @cached_property
    def idle(self) -> tuple[DraftNode, ...]:
        """The nodes that have something to do only where copies are skipped."""
        rotation = self.rotation
        some = self.skipping and rotation.carries and self.count % rotation.order == 0
        return tuple(rotation.closing(rotation.moves(1))) if some else ()


def rotation_in(node: DraftLoop, skipping: bool) -> Rotation:
    """How the carries of a loop rotate; `skipping` matters only to bodies with library calls."""
    body = node.body
    has_calls = any(isinstance(inner, FinishedNode) for inner in body.nodes)
    return rotation_of(body.nodes, body.owned, skipping and has_calls)


def copies_of(rotation: Rotation, condition: int, skipping: bool, count: int) -> Copies:
    """Copies of a loop's body, which may be skipped or not."""
    counting = frozenset() if skipping else counters(rotation.body, condition)
    each = tuple([node for node in rotation.body if node not in counting])
    return Copies(rotation, condition, skipping, each, counting, count)


# -- from a decision to copies


@dataclass(frozen=True, slots=True)
class UnrolledBody:
    """Copies in an iteration, predicated ones with their flags; or all steps, as a part of a loop
    without a node.
    """

    copies: Copies
    flags: tuple[Buffer, ...] = ()
    position: Buffer | None = None
    part: Part | None = None

    def written_out(self) -> WrittenOut:
        """The copies."""
        if self.part is not None:
            return all_steps(self.copies, self.part)
        if self.flags:
            return predicated_copies(self.copies, self.flags, self.position)
        return counted_copies(self.copies)


def prepare_unrolling(draft: Draft) -> None:
    """Reserve what the copies of unrolled bodies need, now that no buffer is renamed any more."""
    _prepare(draft.block, draft.context)


def _prepare(block: Block, context: Context) -> None:
    for node in block.nodes:
        for inner in blocks(node):
            _prepare(inner, context)
        if isinstance(node, DraftLoop) and node.construct.copies != 1:
            node.unrolled = _reserved(node, context)


def _reserved(node: DraftLoop, context: Context) -> UnrolledBody:
    """The unrolled body. Its rotating buffers and its flags get memory that nothing else shares.

    The body loses its moves. One node at its end stands for all of them where accesses matter.
    """
    body, count, steps = node.body, node.construct.copies, node.construct.steps
    skipping = count > 0 and (steps is None or steps % count != 0)
    rotation = rotation_in(node, skipping)
    copies = copies_of(rotation, node.condition, skipping, count or steps or 0)
    flags: list[Buffer] = []
    position = None
    if skipping:
        flags = [context.buffer("scratch", scalar_type(BOOL)) for _ in range(count)]
        if rotation.carries:
            position = context.buffer("scratch", scalar_type(POSITION))
    added = {*flags, *([] if position is None else [position])}
    body.resident = added | (body.owned & rotation.following.keys())
    body.owned |= added
    body.nodes = [*rotation.body, *rotation.closing(rotation.moves(1))]
    return UnrolledBody(copies, tuple(flags), position, None if count else part_of(node))


def write_out_steps(block: Block) -> None:
    """Replace each loop that is to have no node by all of its steps."""
    if not any(is_written_out(node) for node in block.nodes):
        return
    nodes: list[DraftNode] = []
    for node in block.nodes:
        if is_written_out(node):
            count = node.construct.steps
            assert count is not None
            copies = copies_of(rotation_in(node, False), node.condition, False, count)
            nodes += map(_again, all_steps(copies, part_of(node)).nodes)
            block.owned |= node.body.owned
        else:
            nodes.append(node)
    block.nodes = nodes


def part_of(node: DraftLoop) -> Part:
    """What the steps of a loop without a node are a part of."""
    return Part(Inlined(node.construct, 1, True, node.sources), 0)


# -- copies


def predicated_copies(
    copies: Copies, flags: Sequence[Buffer], position: Buffer | None
) -> WrittenOut:
    """One copy for each flag; each that runs sets the condition.

    If the carries rotate, the last copy that runs stores in `position` how far.
    """
    rotation = copies.rotation
    order = rotation.order
    renamed = [rotation.copy(rotation.body, n) for n in range(min(order, len(flags)))]
    written: list[BodyCopy] = []
    for step, flag in enumerate(flags):
        rotated = const((step + 1) % order, POSITION)
        note = None if position is None else Store(position, (), rotated)
        before = flags[step - 1] if step else None
        written.append(_checked(renamed[step % order], copies.condition, flag, note, before))
    if position is None:
        return WrittenOut(written, [])
    ends = range(1, min(order, len(flags) + 1))
    moves = [nest for end in ends for nest in rotation.moves(end, (Predicate(position, end),))]
    return WrittenOut(written, rotation.closing(moves))


def counted_copies(copies: Copies) -> WrittenOut:
    """Copies that all run; the last one sets the condition."""
    last = counting(copies.rotation.body, copies.counters, copies.count)
    return _in_turn(copies, last, None)


def all_steps(copies: Copies, part: Part) -> WrittenOut:
    """A copy for each step of the loop; the condition is not set."""
    if copies.count == 0:
        return WrittenOut([], [])
    last = counting(copies.rotation.body, copies.counters, copies.count)
    return _in_turn(copies, _silent(last, copies.condition), part)


def _in_turn(copies: Copies, last: Sequence[DraftNode | None], part: Part | None) -> WrittenOut:
    """The copies before the last, the last one, and the moves that are left.

    Copies that are at the same place of all cycles are the same object.
    """
    rotation, before = copies.rotation, copies.count - 1
    counting = [None if node in copies.counters else node for node in rotation.body]
    silent = _silent(counting, copies.condition)
    closing = rotation.closing(rotation.moves(copies.count))
    if part is not None:
        silent = [node and _within(node, part) for node in silent]
        last = [node and _within(node, part) for node in last]
        closing = [_within(node, part) for node in closing]
    written = [rotation.copy(silent, n) for n in range(min(before, rotation.order))]
    copied = [written[n % rotation.order] for n in range(before)]
    return WrittenOut([*copied, rotation.copy(last, before)], closing)


def _silent(nodes: Sequence[DraftNode | None], condition: int) -> BodyCopy:
    """The nodes, which leave the condition as it is."""
    rewrites = ConditionRewrites(dropped=frozenset((condition,)))
    return [node and rewritten_node(node, rewrites) for node in nodes]


def _checked(
    nodes: Sequence[DraftNode | None],
    condition: int,
    flag: Buffer,
    note: Store | None,
    before: Buffer | None,
) -> BodyCopy:
    """A copy of a body that stores `flag` where it sets the condition, and makes the store `note`.

    Unless it is the first one, it runs if the flag `before` is set, and else clears its own.
    """
    rewrites = ConditionRewrites({condition: flag})
    goes_on = None if before is None else Predicate(before, True)

    def checked(node: DraftNode | None) -> DraftNode:
        if not isinstance(node, DraftKernel):
            assert isinstance(node, FinishedNode)
            return FinishedNode(replace(node.plan_node))
        nests: list[Nest] = []
        stored = False
        for nest in node.nests:
            rewritten = rewritten_nest(nest, rewrites)
            assert rewritten is not None  # nothing is dropped
            if rewritten is not nest:
                stored = True
                assert isinstance(rewritten, (MapNest, ReduceNest, RowNest))
                if note is not None:
                    rewritten = replace(rewritten, stores=(*rewritten.stores, note))
            nests.append(rewritten if goes_on is None else predicated(rewritten, goes_on))
        if stored and before is not None:
            cleared = Store(flag, (), const(False, flag.type.dtype))
            nests.append(MapNest((), (cleared,), (), (Predicate(before, False),)))
        return DraftKernel(nests, node.sources, node.within)

    return list(map(checked, nodes))


def _again(node: DraftNode) -> DraftNode:
    """A new node that does the same: no node is in a block twice."""
    if isinstance(node, FinishedNode):
        return FinishedNode(replace(node.plan_node))
    assert isinstance(node, DraftKernel)
    return DraftKernel(node.nests, node.sources, node.within)


def _within(node: DraftNode, part: Part) -> DraftNode:
    """The node, as a part of a loop that is not a node of the Plan."""
    if isinstance(node, FinishedNode):
        plan_node = node.plan_node
        within = tuple([(part, *path) for path in plan_node.within or ((),)])
        return FinishedNode(replace(plan_node, within=within))
    assert isinstance(node, DraftKernel)
    within = tuple([(part, *path) for path in node.within or ((),)])
    return DraftKernel(node.nests, node.sources, within)
