"""Buffer sharing: when the value in one buffer may overwrite the value in another.

Buffer `new` may take the memory of `old` if, in order of execution, nothing reads `old` after the
first store to `new`, and the kernel that makes that store reads of `old`, at each point, only the
element that it replaces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from lowering.draft.draft_nodes import (
    Block,
    DraftBranch,
    DraftKernel,
    DraftLoop,
    DraftNode,
    FinishedNode,
    blocks,
    node_reads,
    node_writes,
    rename_in_node,
    without_empty,
)
from lowering.plan.nests.analysis import as_rows, loads, nest_loads, nest_reads, nest_writes
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.kernel import MapNest, Nest, ReduceNest, RowNest, Store, space_index
from tracegraph.ir.scalar import Expr
from tracegraph.ir.scalar_values import Load


class BufferSharing:
    """Sets of buffers of one block that share memory, and when each set is accessed.

    A union-find structure: the buffers of a set are replaced by its representative. Nodes are
    rewritten where a test needs it, and all others by `apply`.
    """

    def __init__(self, block: Block) -> None:
        self.block = block
        self.parents: dict[Buffer, Buffer] = {}
        self.members: dict[Buffer, set[Buffer]] = {}  # of each representative, without itself
        self.first_write: dict[Buffer, int] = {}
        self.last_write: dict[Buffer, int] = {}
        self.last_read: dict[Buffer, int] = {}
        self.fixed: set[Buffer] = set()  # those whose address had better not change
        self.accessed: list[frozenset[Buffer]] = []  # by each node as it is now
        self.rewritten: set[int] = set()  # positions of nodes
        for position, node in enumerate(block.nodes):
            reads, writes = node_reads(node), node_writes(node)
            for buffer in reads:
                self.last_read[buffer] = position
            for buffer in writes:
                self.first_write.setdefault(buffer, position)
                self.last_write[buffer] = position
            accessed = reads | writes
            self.accessed.append(accessed)
            if not isinstance(node, DraftKernel):
                self.fixed |= accessed if isinstance(node, DraftLoop) else _fixed(node)

    def resolve(self, buffer: Buffer) -> Buffer:
        """The representative of a buffer's set."""
        representative = buffer
        while representative in self.parents:
            representative = self.parents[representative]
        while buffer is not representative:  # path compression
            self.parents[buffer], buffer = representative, self.parents[buffer]
        return representative

    def replace(self, buffer: Buffer, target: Buffer) -> None:
        """Replace a buffer by another one, throughout the block."""
        self.parents[buffer] = target
        known, added = self.members.get(target, set()), self.members.pop(buffer, set())
        known, added = (known, added) if len(known) >= len(added) else (added, known)
        known |= added
        known.add(buffer)
        self.members[target] = known
        _merge(self.first_write, buffer, target, min)
        _merge(self.last_write, buffer, target, max)
        _merge(self.last_read, buffer, target, max)
        if buffer in self.fixed:
            self.fixed.add(target)

    def clear(self, position: int) -> None:
        """Empty a node that would only write what its target holds."""
        self.block.nodes[position] = DraftKernel([])
        self.accessed[position] = frozenset()

    def apply(self) -> None:
        """Rewrite all nodes, and remove stores of an element to itself."""
        replaced = self.parents.keys()
        if not replaced:
            return
        for position, accessed in enumerate(self.accessed):
            if not replaced.isdisjoint(accessed):
                self._rewrite(position)
        self.block.owned -= replaced
        _drop_self_copies([self.block.nodes[position] for position in self.rewritten])
        self.block.nodes = without_empty(self.block.nodes)

    def _rewrite(self, position: int) -> DraftNode:
        node, accessed = self.block.nodes[position], self.accessed[position]
        if not self.parents.keys().isdisjoint(accessed):
            names = {buffer: self.resolve(buffer) for buffer in accessed if buffer in self.parents}
            rename_in_node(node, names)
            self.accessed[position] = (accessed - names.keys()).union(names.values())
            self.rewritten.add(position)
        return node

    def _rewritten_for(self, position: int, representatives: Iterable[Buffer]) -> DraftNode:
        """A node, rewritten if it accesses other members of these sets.

        Rewriting all nodes after each `replace` would take quadratic time.
        """
        for buffer in representatives:
            if not self.accessed[position].isdisjoint(self.members.get(buffer, ())):
                return self._rewrite(position)
        return self.block.nodes[position]

    def stay_equal(self, new: Buffer, old: Buffer, copy: int) -> bool:
        """Whether only the copy ever writes `new`, and nothing writes `old` from there on."""
        if not self.first_write[new] == self.last_write[new] == copy:
            return False
        return self.last_write.get(old, -1) < copy

    def can_share(self, new: Buffer, old: Buffer) -> bool:
        """Whether `new` may use the memory of `old` throughout the block."""
        first = self.first_write.get(new)
        if first is None or new.type != old.type:
            return False
        if self.last_read.get(old, -1) > first or self.last_write.get(old, -1) >= first:
            return False
        return reads_in_place(self._rewritten_for(first, (new, old)), new, old)


def _fixed(node: DraftNode) -> frozenset[Buffer]:
    """The buffers of library calls and loops, whose addresses had better not change.

    The address of a call's result changes with each call, and is written into every kernel that
    accesses it. For the one kernel of a branch that stores the result, that is cheaper than a copy.
    """
    match node:
        case DraftKernel():
            return frozenset()
        case FinishedNode(plan_node=plan_node):
            return plan_node.fixed_buffers
        case DraftBranch(branches=branches):
            return frozenset().union(*(_fixed(s) for branch in branches for s in branch.nodes))
    return node_reads(node) | node_writes(node)


def _merge(
    moments: dict[Buffer, int], buffer: Buffer, target: Buffer, choose: Callable[[int, int], int]
) -> None:
    if buffer in moments:
        moment = moments.pop(buffer)
        moments[target] = choose(moments.get(target, moment), moment)


def reads_in_place(node: DraftNode, new: Buffer, old: Buffer) -> bool:
    """Whether a node that writes `new` reads of `old` no element that it may have replaced."""
    match node:
        case DraftKernel(nests=nests):
            return all(
                _replaces_pointwise(nest, new, old) for nest in nests if old in nest_reads(nest)
            )
        case DraftBranch(branches=branches):
            return all(_branch_shares(branch, new, old) for branch in branches)
    return old not in node_reads(node)


def _branch_shares(branch: Block, new: Buffer, old: Buffer) -> bool:
    reads = any(old in node_reads(s) for s in branch.nodes)
    return not reads or BufferSharing(branch).can_share(new, old)


def _replaces_pointwise(nest: Nest, new: Buffer, old: Buffer) -> bool:
    """Whether each point reads of `old` only the element of `new` that it stores, before it does.

    A reduction stores at a point after the loop of that point. A row pass must not read what an
    earlier pass has replaced.
    """
    if new not in nest_writes(nest):
        return False
    match nest:
        case MapNest():
            return _maps_in_place(nest, new, old)
        case ReduceNest() | RowNest():
            return _rows_replace(as_rows(nest), new, old)
    return False


def _maps_in_place(nest: MapNest, new: Buffer, old: Buffer) -> bool:
    """The same for a map, whose points may store several elements where an axis is unrolled.

    No two points store one element. All loads of a point precede its stores.
    """
    stored = {s.indices for s in nest.stores if s.buffer is new and s.guard is None}
    read = [load for load in nest_loads(nest) if load.buffer is old]
    return all(load.indices in stored for load in read)


def _rows_replace(rows: RowNest, new: Buffer, old: Buffer) -> bool:
    row = space_index(rows.space)
    step = (*row, *space_index(rows.loop, first=len(row)))
    last = [*(s.value for s in rows.stores), *(s.value for s in rows.signals)]
    passes = [[a.value for a in p.accumulators] + [s.value for s in p.stores] for p in rows.passes]
    for k, each in enumerate(rows.passes):
        if any(store.buffer is new for store in each.stores):
            after = [*(e for later in passes[k + 1 :] for e in later), *last]
            before = [e for earlier in passes[: k + 1] for e in earlier]
            unread = all(load.buffer is not old for load in loads(after))
            return unread and _at_one_point(loads(before), each.stores, step, new, old)
    # the row's own stores follow all its passes
    read = loads([*(e for p in passes for e in p), *last])
    return _at_one_point(read, rows.stores, row, new, old)


def _at_one_point(
    read: Sequence[Load],
    stores: Sequence[Store],
    point: tuple[Expr, ...],
    new: Buffer,
    old: Buffer,
) -> bool:
    return all(
        load.guard is None and load.indices == point for load in read if load.buffer is old
    ) and all(store.indices == point for store in stores if store.buffer is new)


def _drop_self_copies(nodes: Iterable[DraftNode]) -> None:
    """Remove stores of an element to itself, and nodes that are empty then in bodies."""
    for node in nodes:
        if isinstance(node, DraftKernel):
            node.nests = [n for n in map(_without_self_copies, node.nests) if n is not None]
        for inner in blocks(node):
            _drop_self_copies(inner.nodes)
            inner.nodes = without_empty(inner.nodes)


def _without_self_copies(nest: Nest) -> Nest | None:
    if not isinstance(nest, MapNest):
        return nest
    kept = tuple([s for s in nest.stores if not _is_self_copy(s)])
    if not kept and not nest.signals:
        return None
    if len(kept) == len(nest.stores):
        return nest
    return MapNest(nest.space, kept, nest.signals, nest.predicates)


def _is_self_copy(store: Store) -> bool:
    value = store.value
    return (
        isinstance(value, Load)
        and value.buffer is store.buffer
        and value.guard is None
        and store.guard is None
        and value.indices == store.indices
    )
