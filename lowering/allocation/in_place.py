"""In-place updates: new carries, updated arrays and results written over what they replace."""

from __future__ import annotations

from lowering.allocation.buffer_sharing import BufferSharing
from lowering.draft.context import Context
from lowering.draft.draft_nodes import Block, DraftKernel, DraftNode
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.kernel import MapNest, Nest, Store, is_at, space_index, without_ones
from tracegraph.ir.scalar_values import Load


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
        store = Store(carry, index, Load.make(new, index))
        by_shape.setdefault(carry.type.shape, []).append(store)
    nests: list[Nest] = [MapNest(shape, tuple(stores)) for shape, stores in by_shape.items()]
    if any(all(nest.space) for nest in nests):
        body.nodes.append(DraftKernel([n for n in nests if all(n.space)]))


def drop_copies(block: Block, context: Context) -> None:
    """Copy elimination: a copy of an array that is not needed any more takes over its buffer.

    So updates are written in place, and results where they are returned. Sinks of the block keep
    their buffers. An update of a carry that nothing reads any more is made in the carry itself;
    later, fusion would have brought the copy before readers of the old value.
    """
    copies = [(k, pair) for k, node in enumerate(block.nodes) if (pair := plain_copy(node))]
    if not copies:
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
    if not isinstance(node, DraftKernel) or len(node.nests) != 1:
        return None
    (nest,) = node.nests
    if not isinstance(nest, MapNest) or len(nest.stores) != 1 or nest.signals or nest.predicates:
        return None
    (store,) = nest.stores
    value = store.value
    if isinstance(value, Load) and is_own_point(value, nest.space):
        whole = value.buffer.type == store.buffer.type and store.buffer.type.shape
        return (store.buffer, value.buffer) if whole == nest.space else None
    return None


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
