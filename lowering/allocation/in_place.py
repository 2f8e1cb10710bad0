"""In-place updates: new carries, updated arrays and results written over what they replace."""

from __future__ import annotations

from collections.abc import Sequence

from lowering.allocation.buffer_sharing import BufferSharing
from lowering.draft.context import Context
from lowering.draft.draft_nodes import (
    Block,
    DraftKernel,
    DraftNode,
    FinishedNode,
    node_reads,
    node_writes,
)
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.kernel import MapNest, Nest, Store, is_at, space_index, without_ones
from lowering.plan.nests.strides import offset_in
from lowering.plan.nodes import LibraryNode
from tracegraph.ir import scalar
from tracegraph.ir.scalar_values import Load
from tracegraph.ir.types import row_major_strides


def place_carries(body: Block, context: Context) -> None:
    """Write the new value of each carry to the buffer from which the next step reads it.

    The value is computed there if that is safe. Otherwise it is copied there at the end of the
    body. The copies of one shape are one nest, which reads all before it writes, so that permuted
    carries need no further memory. Multi-buffering (`scheduling.buffer_rotation`) avoids these
    copies.
    """
    if not body.carries:
        return
    moves: list[tuple[Buffer, Buffer]] = []
    sharing = BufferSharing(body)
    for new, carry in body.carries.items():
        if sharing.can_share(new, carry):
            sharing.replace(new, carry)
        else:
            moves.append((new, carry))
    sharing.apply()
    by_shape: dict[tuple[int, ...], list[Store]] = {}
    for new, carry in moves:
        index = space_index(carry.type.shape)
        store = Store(carry, index, Load.make(new, index, None))
        by_shape.setdefault(carry.type.shape, []).append(store)
    nests: list[Nest] = [MapNest(shape, tuple(stores)) for shape, stores in by_shape.items()]
    if any(all(nest.space) for nest in nests):
        body.nodes.append(DraftKernel([n for n in nests if all(n.space)]))


def drop_copies(block: Block, context: Context) -> None:
    """Copy elimination: a copy of an array that is not needed any more takes over its buffer.

    So updates are written in place, and results where they are returned. Sinks of the block keep
    their buffers. An update of a carry that nothing reads any more is made in the carry itself;
    later, fusion would have brought the copy before readers of the old value.

    What library calls write and read has strides of its own, so that the copy may be a reshape.
    """
    copies = [(k, pair) for k, node in enumerate(block.nodes) if (pair := plain_copy(node))]
    reshapes = [(k, pair) for k, node in enumerate(block.nodes) if (pair := _reshape(node))]
    if not copies and not reshapes:
        return
    kept = set(block.sinks)
    sharing = BufferSharing(block)
    for position, pair in copies:
        new, old = map(sharing.resolve, pair)
        if old not in block.owned or old in kept:
            continue
        if not sharing.stay_equal(new, old, position) and not sharing.can_share(new, old):
            continue
        # the address of a call's result changes, that of scratch does not
        fixed = new.space != "scratch" and old in sharing.fixed
        if new in block.owned or (new in kept and not fixed):
            sharing.replace(old, new)
            sharing.clear(position)
    only_strided = _accessed_by_calls(sharing, reshapes)
    for position, pair in reshapes:
        new, old = map(sharing.resolve, pair)
        if old in kept or old not in block.owned or old not in only_strided:
            continue
        fixed = new.space != "scratch" and old in sharing.fixed
        may_take_over = new in block.owned or (new in kept and not fixed)
        if may_take_over and sharing.stay_equal(new, old, position):
            sharing.replace(old, new)
            sharing.clear(position)
    carries = set(block.carries.values())
    for position, pair in copies if carries else ():
        new, old = map(sharing.resolve, pair)
        carry = block.carries.get(new, old)
        if carry is old and old in carries and new in block.owned and sharing.can_share(new, old):
            sharing.replace(new, old)
            sharing.clear(position)
            block.carries = {n: c for n, c in block.carries.items() if n is not new}
    sharing.apply()


def plain_copy(node: DraftNode) -> tuple[Buffer, Buffer] | None:
    """(target, source) if the node is one plain copy of a buffer."""
    nest = _only_store(node)
    if nest is None:
        return None
    (store,) = nest.stores
    value = store.value
    if isinstance(value, Load) and is_own_point(value, nest.space):
        whole = value.buffer.type == store.buffer.type and store.buffer.type.shape
        return (store.buffer, value.buffer) if whole == nest.space else None
    return None


def _reshape(node: DraftNode) -> tuple[Buffer, Buffer] | None:
    """(target, source) if the node only copies a buffer to one of another shape, in order."""
    nest = _only_store(node)
    if nest is None:
        return None
    (store,) = nest.stores
    value, shape = store.value, store.buffer.type.shape
    if not isinstance(value, Load) or value.guard is not None or store.guard is not None:
        return None
    source = value.buffer.type
    if shape == source.shape or shape != nest.space or store.indices != space_index(shape):
        return None
    if (source.dtype, source.size) != (store.buffer.type.dtype, store.buffer.type.size):
        return None
    place = scalar.affine(offset_in(source.shape, value.indices))
    strides = zip(shape, row_major_strides(shape), strict=True)
    along = {axis: stride for axis, (extent, stride) in enumerate(strides) if extent > 1}
    return (store.buffer, value.buffer) if place == (along, 0) else None


def _accessed_by_calls(
    sharing: BufferSharing, reshapes: Sequence[tuple[int, tuple[Buffer, Buffer]]]
) -> set[Buffer]:
    """The sources of reshapes that nothing else but library calls of the block accesses, nor the
    buffers that share their memory.
    """
    own = {position: sharing.resolve(old) for position, (_, old) in reshapes}
    found = set(own.values())
    for position, node in enumerate(sharing.block.nodes if found else ()):
        if isinstance(node, FinishedNode) and isinstance(node.plan_node, LibraryNode):
            continue
        accessed = set(map(sharing.resolve, node_reads(node) | node_writes(node)))
        found -= accessed - ({own[position]} if position in own else set())
    return found


def _only_store(node: DraftNode) -> MapNest | None:
    """The nest of a kernel that is one map with one store."""
    if not isinstance(node, DraftKernel) or len(node.nests) != 1:
        return None
    (nest,) = node.nests
    if not isinstance(nest, MapNest) or len(nest.stores) != 1 or nest.signals or nest.predicates:
        return None
    return nest


def copied_whole(store: Store, space: tuple[int, ...]) -> Buffer | None:
    """The buffer that a store of a map copies as a whole to another one."""
    value, target = store.value, store.buffer.type
    if not isinstance(value, Load) or value.guard is not None or store.guard is not None:
        return None
    same = value.buffer.type == target and value.indices == store.indices
    whole = without_ones(target.shape) == without_ones(space)
    return value.buffer if same and whole and is_at(space_index(space), store.indices) else None


def is_own_point(load: Load, space: tuple[int, ...]) -> bool:
    """Whether a load reads, unguarded, the point of the space that is computed."""
    return load.guard is None and load.indices == space_index(space)
