"""Sharing memory between a value and the one it replaces: carries and updated arrays in place.

Buffer `new` may take the memory of `old` if, in order of execution, nothing reads `old` after the
first store to `new`, and the kernel that makes that store reads of `old`, at each point, only the
element that it replaces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from lowering.draft.context import Context
from lowering.draft.stage import (
    Block,
    BranchStage,
    KernelStage,
    Stage,
    blocks,
    rename_in_stage,
    stage_reads,
    stage_writes,
)
from lowering.plan.buffer import Buffer
from lowering.plan.kernel import MapNest, Nest, ReduceNest, RowNest, Store, space_index
from lowering.plan.nest_analysis import as_rows, loads, nest_loads, nest_reads, nest_writes
from tracegraph.ir.scalar import Expr
from tracegraph.ir.scalar_values import Load


def place_carries(body: Block, context: Context) -> None:
    """Make a loop's body leave the new value of each carry in the buffer that the next step reads.

    In place where that is safe; the others move at the end of the body, same shapes in one nest,
    which reads all before it writes: permuted carries need no further memory. Where the body is
    copied, `scheduling.buffer_rotation` does without these moves.
    """
    if not body.carries:
        return
    moves: list[tuple[Buffer, Buffer]] = []
    sharing = Sharing(body)
    for new, carry in body.carries.items():
        if sharing.can_share(new, carry):
            sharing.rename(new, carry)
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
        body.stages.append(KernelStage([n for n in nests if all(n.space)]))


def drop_copies(block: Block, context: Context) -> None:
    """Drop plain copies of arrays that are not needed any more: the copy takes their memory.

    So an updated array is written in place, and a result where it is returned. The block's sinks
    keep their names.
    """
    copies = [(k, pair) for k, stage in enumerate(block.stages) if (pair := plain_copy(stage))]
    if not copies:
        return
    kept = set(block.sinks)
    sharing = Sharing(block)
    for position, pair in copies:
        new, old = map(sharing.name, pair)
        if old not in block.owned or old in kept:
            continue
        if not sharing.stay_equal(new, old, position) and not sharing.can_share(new, old):
            continue
        fixed = new.space != "scratch" and old in sharing.fixed  # a call's output moves
        if new in block.owned or (new in kept and not fixed):
            sharing.rename(old, new)
            sharing.empty(position)
    sharing.apply()


class Sharing:
    """Which buffers of a block go by another's name, and when the buffers of a name are in use.

    Stages get the new names where those matter, and at the end all together, in `apply`.
    """

    def __init__(self, block: Block) -> None:
        self.block = block
        self.names: dict[Buffer, Buffer] = {}
        self.called: dict[Buffer, set[Buffer]] = {}  # by each name, who goes by it now
        self.first_write: dict[Buffer, int] = {}
        self.last_write: dict[Buffer, int] = {}
        self.last_read: dict[Buffer, int] = {}
        self.fixed: set[Buffer] = set()  # had better stay at one address
        self.touched: list[frozenset[Buffer]] = []  # by each stage, under its present names
        self.renamed: set[int] = set()  # stages that have got new names
        for position, stage in enumerate(block.stages):
            reads, writes = stage_reads(stage), stage_writes(stage)
            for buffer in reads:
                self.last_read[buffer] = position
            for buffer in writes:
                self.first_write.setdefault(buffer, position)
                self.last_write[buffer] = position
            touched = reads | writes
            self.touched.append(touched)
            if not isinstance(stage, KernelStage):
                self.fixed |= _fixed(stage) if isinstance(stage, BranchStage) else touched

    def name(self, buffer: Buffer) -> Buffer:
        """What a buffer is called by now."""
        found = buffer
        while found in self.names:
            found = self.names[found]
        while buffer is not found:  # nobody walks this way again
            self.names[buffer], buffer = found, self.names[buffer]
        return found

    def rename(self, buffer: Buffer, name: Buffer) -> None:
        """Let a buffer go by another name, throughout the block."""
        self.names[buffer] = name
        known, added = self.called.get(name, set()), self.called.pop(buffer, set())
        known, added = (known, added) if len(known) >= len(added) else (added, known)
        known |= added
        known.add(buffer)
        self.called[name] = known
        _merge(self.first_write, buffer, name, min)
        _merge(self.last_write, buffer, name, max)
        _merge(self.last_read, buffer, name, max)
        if buffer in self.fixed:
            self.fixed.add(name)

    def empty(self, position: int) -> None:
        """Leave nothing to do to a stage that writes what is there by now."""
        self.block.stages[position] = KernelStage([])
        self.touched[position] = frozenset()

    def apply(self) -> None:
        """Give all stages the new names, and remove stores that then write what is there."""
        renamed = self.names.keys()
        if not renamed:
            return
        for position, touched in enumerate(self.touched):
            if not renamed.isdisjoint(touched):
                self._update(position)
        self.block.owned -= renamed
        _drop_self_copies([self.block.stages[position] for position in self.renamed])
        self.block.stages = _without_empty(self.block.stages)

    def _update(self, position: int) -> Stage:
        stage, touched = self.block.stages[position], self.touched[position]
        if not self.names.keys().isdisjoint(touched):
            names = {buffer: self.name(buffer) for buffer in touched if buffer in self.names}
            rename_in_stage(stage, names)
            self.touched[position] = (touched - names.keys()).union(names.values())
            self.renamed.add(position)
        return stage

    def _with_names(self, position: int, names: Iterable[Buffer]) -> Stage:
        """A stage in which whoever goes by these names does; renaming all each time takes long."""
        for name in names:
            if not self.touched[position].isdisjoint(self.called.get(name, ())):
                return self._update(position)
        return self.block.stages[position]

    def stay_equal(self, new: Buffer, old: Buffer, copy: int) -> bool:
        """Whether only the copy ever writes `new`, and nothing writes `old` from there on."""
        if not self.first_write[new] == self.last_write[new] == copy:
            return False
        return self.last_write.get(old, -1) < copy

    def can_share(self, new: Buffer, old: Buffer) -> bool:
        """Whether `new` may live in the memory of `old` throughout the block."""
        first = self.first_write.get(new)
        if first is None or new.type != old.type:
            return False
        if self.last_read.get(old, -1) > first or self.last_write.get(old, -1) >= first:
            return False
        return reads_in_place(self._with_names(first, (new, old)), new, old)


def _fixed(stage: Stage) -> frozenset[Buffer]:
    """What library calls and loops work on.

    A call that returns other memory than the last patches its address into every kernel that has
    it. For the one kernel of a branch that stores a result that is cheaper than a copy.
    """
    match stage:
        case KernelStage():
            return frozenset()
        case BranchStage(branches=branches):
            return frozenset().union(*(_fixed(s) for branch in branches for s in branch.stages))
    return stage_reads(stage) | stage_writes(stage)


def _merge(
    moments: dict[Buffer, int], buffer: Buffer, name: Buffer, choose: Callable[[int, int], int]
) -> None:
    if buffer in moments:
        moment = moments.pop(buffer)
        moments[name] = choose(moments.get(name, moment), moment)


def plain_copy(stage: Stage) -> tuple[Buffer, Buffer] | None:
    """(target, source) if the stage is one plain copy of a buffer."""
    if not isinstance(stage, KernelStage) or len(stage.nests) != 1:
        return None
    (nest,) = stage.nests
    if not isinstance(nest, MapNest) or len(nest.stores) != 1 or nest.signals or nest.predicates:
        return None
    (store,) = nest.stores
    value = store.value
    if isinstance(value, Load) and is_own_point(value, nest.space):
        whole = value.buffer.type == store.buffer.type and store.buffer.type.shape
        return (store.buffer, value.buffer) if whole == nest.space else None
    return None


def reads_in_place(stage: Stage, new: Buffer, old: Buffer) -> bool:
    """Whether a stage that writes `new` reads of `old` no element that it may have replaced."""
    match stage:
        case KernelStage(nests=nests):
            return all(
                _replaces_pointwise(nest, new, old) for nest in nests if old in nest_reads(nest)
            )
        case BranchStage(branches=branches):
            return all(_branch_shares(branch, new, old) for branch in branches)
    return old not in stage_reads(stage)


def _branch_shares(branch: Block, new: Buffer, old: Buffer) -> bool:
    reads = any(old in stage_reads(s) for s in branch.stages)
    return not reads or Sharing(branch).can_share(new, old)


def _replaces_pointwise(nest: Nest, new: Buffer, old: Buffer) -> bool:
    """Whether, of `old`, each point reads at most the element of `new` that it stores, and before.

    A reduction stores at a point when the loop of that point is over. A pass over rows must not
    read what an earlier pass has replaced.
    """
    if new not in nest_writes(nest):
        return False
    match nest:
        case MapNest():
            return _at_one_point(nest_loads(nest), nest.stores, space_index(nest.space), new, old)
        case ReduceNest() | RowNest():
            return _rows_replace(as_rows(nest), new, old)
    return False


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
    # the row's own stores come when all its passes are over
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


def _drop_self_copies(stages: Iterable[Stage]) -> None:
    """Remove stores that write to an element what it holds, and what is empty then in bodies."""
    for stage in stages:
        if isinstance(stage, KernelStage):
            stage.nests = [n for n in map(_without_self_copies, stage.nests) if n is not None]
        for inner in blocks(stage):
            _drop_self_copies(inner.stages)
            inner.stages = _without_empty(inner.stages)


def _without_empty(stages: Iterable[Stage]) -> list[Stage]:
    return [s for s in stages if not isinstance(s, KernelStage) or s.nests]


def _without_self_copies(nest: Nest) -> Nest | None:
    if not isinstance(nest, MapNest):
        return nest
    kept = tuple([s for s in nest.stores if not _is_self_copy(s, nest.space)])
    if not kept and not nest.signals:
        return None
    if len(kept) == len(nest.stores):
        return nest
    return MapNest(nest.space, kept, nest.signals, nest.predicates)


def _is_self_copy(store: Store, space: Sequence[int]) -> bool:
    value = store.value
    return (
        isinstance(value, Load)
        and value.buffer is store.buffer
        and value.guard is None
        and store.guard is None
        and value.indices == store.indices
    )


def is_own_point(load: Load, space: tuple[int, ...]) -> bool:
    """Whether a load reads, unguarded, the point of the space that is computed."""
    return load.guard is None and load.indices == space_index(space)
