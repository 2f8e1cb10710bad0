"""Double buffering: carries that a step would copy at its end swap their buffers instead.

The new value of a carry has a buffer of its own where the old value is still read. In a Plan the
step ends with a copy. A kernel that runs all steps swaps two pointers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from typing import NamedTuple

from lowering.codegen.nest_kinds import CanonicalNest
from lowering.codegen.persistent.surroundings import Surroundings
from lowering.plan.conditional_nodes import WhileNode
from lowering.plan.nests.analysis import nest_reads, nest_writes
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.kernel import MapNest, RowNest, ScanNest, Store, space_index
from lowering.plan.nodes import KernelNode, Node, walk
from tracegraph.ir.scalar_values import Load


class SwappedCarry(NamedTuple):
    """The buffers of the new and the old value of a carry, and the nest that would copy it."""

    new: Buffer
    old: Buffer
    copy: MapNest


def swapped_carries(
    loop: WhileNode,
    nests: Mapping[KernelNode, tuple[CanonicalNest, ...]],
    surroundings: Surroundings,
    placed: Set[Buffer],
) -> tuple[SwappedCarry, ...]:
    """The carries of a loop whose buffers can be swapped at the end of each step.

    `placed` are the buffers that the kernel keeps in memory of its own. Others must not share their
    memory with a buffer that lives at another time.
    """
    found: list[SwappedCarry] = []
    seen: set[Buffer] = set()
    inside = set(walk(loop.body))
    for position, node in enumerate(loop.body.nodes):
        for nest in nests.get(node, ()) if isinstance(node, KernelNode) else ():
            pair = _copied(nest)
            if pair is None or not seen.isdisjoint(pair):
                continue
            new, old = pair
            alone = {new, old} <= placed or new in surroundings.alone
            if not alone or not surroundings.only_in(new, inside):
                continue
            if _can_be_swapped(loop, nests, position, nest, new, old):
                assert isinstance(nest, MapNest)
                found.append(SwappedCarry(new, old, nest))
                seen |= {new, old}
    return tuple(found)


def _copied(nest: CanonicalNest) -> tuple[Buffer, Buffer] | None:
    """The source and the target of a nest that copies one whole buffer to another."""
    if not isinstance(nest, MapNest) or nest.predicates or nest.signals or len(nest.stores) != 1:
        return None
    (store,) = nest.stores
    value = store.value
    if not isinstance(value, Load) or value.guard is not None or not _fills(store, nest.space):
        return None
    same = value.indices == store.indices and value.buffer.type == store.buffer.type
    return (value.buffer, store.buffer) if same else None


def _fills(store: Store, space: tuple[int, ...]) -> bool:
    """Whether the store writes each element of its buffer at one point of the space."""
    whole = store.buffer.type.shape == space and store.indices == space_index(space)
    return whole and store.guard is None


def _can_be_swapped(
    loop: WhileNode,
    nests: Mapping[KernelNode, tuple[CanonicalNest, ...]],
    position: int,
    copy: CanonicalNest,
    new: Buffer,
    old: Buffer,
) -> bool:
    """Whether the body writes all of `new` before it reads it, and `old` by the copy alone, behind
    which it accesses neither.
    """
    filled = False
    for number, node in enumerate(loop.body.nodes):
        reads, writes = _accesses(node, nests, copy)
        if number > position and not (reads | writes).isdisjoint((new, old)):
            return False
        if old in writes or (new in reads and not filled):
            return False
        if new in writes and not filled:
            own = nests.get(node, ()) if isinstance(node, KernelNode) else ()
            filled = any(fills_all(nest, new) for nest in own)
            if not filled:
                return False
    return filled


def _accesses(
    node: Node, nests: Mapping[KernelNode, tuple[CanonicalNest, ...]], copy: CanonicalNest
) -> tuple[set[Buffer], set[Buffer]]:
    """What a node reads and writes, its bodies included and the copy left out."""
    reads: set[Buffer] = set()
    writes: set[Buffer] = set()
    for each in (node, *(inner for body in node.bodies for inner in walk(body))):
        if isinstance(each, KernelNode):
            own: Sequence[CanonicalNest] = [nest for nest in nests[each] if nest is not copy]
            reads = reads.union(*map(nest_reads, own))
            writes = writes.union(*map(nest_writes, own))
        else:
            reads |= each.reads
            writes |= each.writes
    return reads, writes


def fills_all(nest: CanonicalNest, buffer: Buffer) -> bool:
    """Whether a nest that always runs writes each element of a buffer."""
    return not nest.predicates and any(
        store.buffer is buffer and _fills(store, space) for store, space in _stores(nest)
    )


def _stores(nest: CanonicalNest) -> Iterator[tuple[Store, tuple[int, ...]]]:
    """The stores of a nest that are made at every point, each with its space."""
    match nest:
        case MapNest():
            yield from ((store, nest.space) for store in nest.stores)
        case RowNest():
            yield from ((store, nest.space) for store in nest.stores)
            steps = (*nest.space, *nest.loop)
            yield from ((store, steps) for each in nest.passes for store in each.stores)
        case ScanNest():
            yield nest.store, nest.space
