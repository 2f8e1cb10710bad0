"""Phases: the nodes of a persistent kernel as statements, with barriers where they are needed.

A phase that depends on others waits for a barrier behind them. Each step of a loop ends with a
barrier, behind which all threads read the condition. It has two words, which take turns: the next
step may write one while slow threads still read the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from lowering.codegen.effects.signals import word
from lowering.codegen.geometry_records import LaunchGeometry, shared_bytes
from lowering.codegen.nest_kinds import CanonicalNest
from lowering.codegen.nests import write_nest
from lowering.codegen.node_code import NODE_CODE
from lowering.codegen.persistent.peer_exchanges import write_exchange
from lowering.codegen.persistent.peer_rooms import SentStop
from lowering.codegen.persistent.persistent_layout import WORDS, PersistentLayout
from lowering.codegen.persistent.running_blocks import running_blocks
from lowering.codegen.persistent.sent_in_turns import declare_turns, needs_no_barrier, take_turns
from lowering.codegen.persistent.storage import MAX_UNROLLED
from lowering.codegen.persistent.swapped_carries import SwappedCarry
from lowering.codegen.source_writer import SourceWriter
from lowering.plan.conditional_nodes import IfElseNode, SwitchNode, WhileNode
from lowering.plan.nests.analysis import nest_expressions
from lowering.plan.nests.buffer import Buffer, overlap
from lowering.plan.nodes import Graph, KernelNode, LibraryNode, Node
from lowering.plan.target.scope import Scope
from tracegraph.generated.dataclass import dataclass
from tracegraph.ir.op import Elementwise
from tracegraph.ir.scalar_values import Apply

UNROLLED_COST = 300
"""Operations, in units of `Elementwise.cost`, that a thread of a lane writes out. NVRTC took 0.9 s
for a sampler of ten dimensions with it, and 1.8 s without."""


@dataclass
class PhaseWriter:
    """Writes the nodes of the graphs of one kernel.

    `swaps` has the carries of each loop that swap their buffers: nothing copies them.
    `offsets` places scratch buffers. `stop` is the stop flag. `turns` has what each loop sends in
    turns.
    """

    writer: SourceWriter
    scope: Scope
    layout: PersistentLayout
    swaps: Mapping[WhileNode, tuple[SwappedCarry, ...]]
    offsets: Mapping[Buffer, int]
    stop: SentStop
    turns: Mapping[WhileNode, Mapping[Buffer, int]] = field(default_factory=dict)
    _waiting: set[Node] = field(default_factory=set)
    """The nodes that no barrier separates from what is written next."""
    _in_each_block: set[Node] = field(default_factory=set)
    """Those of them that each block has run as a whole."""
    _blocks_are_apart: bool = False
    """Whether threads of a block may still run one of these."""
    _shares: bool = False
    """Whether they use the shared memory of phases."""
    _blocks: int = 0
    """Their virtual blocks."""
    _since: set[Node] | None = None
    """Those since a step began, as long as no barrier was written."""
    _nests: dict[KernelNode, list[CanonicalNest]] = field(init=False)
    """The nests that are written."""

    def __post_init__(self) -> None:
        copies = {each.copy for found in self.swaps.values() for each in found}
        self._nests = {
            node: [nest for nest in nests if nest not in copies]
            for node, nests in self.layout.nests.items()
        }

    def graph(self, graph: Graph) -> None:
        """Write the nodes of a graph: those at the same depth of dependences together."""
        before: dict[Node, list[Node]] = {node: [] for node in graph.nodes}
        depth: dict[Node, int] = {}
        for i, j in graph.edges:
            before[graph.nodes[j]].append(graph.nodes[i])
        for node in graph.nodes:
            depth[node] = 1 + max((depth[each] for each in before[node]), default=0)
        for node in sorted(graph.nodes, key=depth.__getitem__):  # stable
            if isinstance(node, KernelNode) and not self._nests[node]:
                continue
            self._wait_for(self._waiting.intersection(before[node]), node)
            self._write(node)
            self._waiting.add(node)

    def _wait_for(self, nodes: set[Node], node: Node) -> None:
        """Write the barrier behind nodes that a node depends on, if they may still run.

        What each block has written itself, its threads read behind a barrier of their own. Other
        blocks may still access what these nodes do, and those that were before them.
        """
        if not nodes:
            return
        own = isinstance(node, KernelNode | LibraryNode) and nodes <= self._in_each_block
        used = [buffer for each in self._waiting for buffer in each.accessed_buffers]
        if not own or any(overlap(b, u, self.offsets) for b in node.writes for u in used):
            self.barrier()
        elif self._blocks_are_apart and self.scope.threads > 1:
            self.writer.line(_BLOCK_BARRIER)
            self._blocks_are_apart = False

    def _write(self, node: Node) -> None:
        if self._since is not None:
            self._since.add(node)
        match node:
            case KernelNode():
                self._write_kernel(node)
            case LibraryNode():
                self._write_exchange(node)
            case IfElseNode():
                self._write_if_else(node)
            case SwitchNode():
                self._write_switch(node)
            case WhileNode():
                self._write_while(node)
            case _:
                phase = NODE_CODE[type(node)].phase
                assert phase is not None, "no other node is a phase"
                phase(self.writer, self.scope, node)

    def barrier(self) -> None:
        """Let all threads wait for all."""
        if self.scope.blocks > 1:
            name = "TG_CLUSTER_BARRIER" if self.scope.clustered else "tg_grid_barrier"
            given = "arrived, arrivals"
            if self.scope.beside:
                name, given = "tg_await_blocks", f"{given}, {self.scope.blocks}"
            self.writer.line(f"{name}({given});")
        elif self.scope.threads > 1:
            self.writer.line(_BLOCK_BARRIER)
        self._waiting.clear()
        self._since = None
        self._in_each_block.clear()
        self._shares = self._blocks_are_apart = False
        self._blocks = 0

    def _write_exchange(self, node: LibraryNode) -> None:
        """Write collectives that are carried out at once."""
        room = self.layout.peers.rooms[node]
        write_exchange(self.writer, self.scope, node, room, self.stop)
        if room.form in ("small", "whole"):
            self._in_each_block.add(node)
            self._blocks_are_apart = True

    def _write_kernel(self, node: KernelNode) -> None:
        """Write the nests of a kernel."""
        for nest in self._nests[node]:
            geometry = self.layout.geometries[nest]
            if geometry.blocks:
                self._write_nest(nest, geometry)

    def _write_nest(self, nest: CanonicalNest, geometry: LaunchGeometry) -> None:
        writer, scope = self.writer, self.scope
        shares = scope.threads > 1 and shared_bytes(geometry) > 0
        if shares and self._shares:
            writer.line(_BLOCK_BARRIER)
        if scope.threads == 1:
            short = geometry.blocks <= MAX_UNROLLED
            if short and scope.lanes and geometry.blocks > 1:
                short = geometry.blocks * _cost(nest) <= UNROLLED_COST
            writer.line("#pragma unroll" if short else "#pragma unroll 1")
        first, step = "0", "1"
        if scope.blocks > 1:
            step = running_blocks(scope)
            first = f"tg_first_block(int(blockIdx.x), {step}, {self._blocks})"
            self._blocks += geometry.blocks
        workspace = self.layout.workspaces.get(nest, "nullptr")
        with writer.block(f"for (int block = {first}; block < {geometry.blocks}; block += {step})"):
            write_nest(writer, nest, geometry, workspace, "continue")
            if shares and geometry.blocks > scope.blocks:
                writer.line(_BLOCK_BARRIER)
        self._shares |= shares

    def _write_if_else(self, node: IfElseNode) -> None:
        """Write two branches."""
        self._branches(f"if (*{word(node.condition)})", node.then)
        self._branches("else", node.otherwise)

    def _write_switch(self, node: SwitchNode) -> None:
        """Write branches by number; the condition is in range."""
        for number, branch in enumerate(node.branches):
            test = f"if (*{word(node.condition)} == {number}u)"
            self._branches(test if number == 0 else f"else {test}", branch)

    def _branches(self, head: str, graph: Graph) -> None:
        waiting, shares = set(self._waiting), self._shares
        each, apart = set(self._in_each_block), self._blocks_are_apart
        with self.writer.block(head):
            self.graph(graph)
        self._waiting |= waiting
        self._in_each_block |= each
        self._shares |= shares
        self._blocks_are_apart |= apart

    def _write_while(self, node: WhileNode) -> None:
        """Write a loop."""
        writer, name = self.writer, word(node.condition)
        turns = self.turns.get(node, {})
        declare_turns(writer, turns)
        entry = name if node.entry is None else writer.pointers[node.entry]
        turn, go = f"turn{node.condition}", f"go{node.condition}"
        writer.line(f"bool {go} = *{entry} != 0;")
        writer.line(
            "#pragma unroll 1"
        )  # some are unrolled fourfold, and compile four times as long
        with writer.block(f"for (int {turn} = 0; {go}; {turn} ^= 1)"):
            if self.scope.threads > 1:
                place = f"words + {WORDS * self.layout.slots[node.condition]} + {turn}"
                writer.line(f"{_WORD}* const {name} = {place};")
            self._step(node, turns)
            for each in self.swaps.get(node, ()):
                new, old = writer.pointers[each.new], writer.pointers[each.old]
                writer.line(f"tg_exchange({new}, {old});")
            writer.line(f"{go} = *{name} != 0;")

    def _step(self, node: WhileNode, turns: Mapping[Buffer, int]) -> None:
        """Write the body of a loop, and the barrier behind it, unless none is needed."""
        if self.scope.blocks == 1 or self.swaps.get(node) or not _is_plain(node.body):
            self.graph(node.body)
            self.barrier()
            return
        begun = self._begin()
        self.graph(node.body)
        if (
            self._since is None
            and self._waiting
            and self._waiting <= self._in_each_block
            and needs_no_barrier(self._waiting, begun, turns, self.offsets)
        ):
            self.writer.line(_BLOCK_BARRIER)
            self._blocks_are_apart = False
        else:
            self.barrier()
        take_turns(self.writer, turns)

    def _begin(self) -> set[Node]:
        """Collect what is written from here to the next barrier."""
        found: set[Node] = set()
        self._since = found
        return found


def _is_plain(graph: Graph) -> bool:
    """Whether a body has no loops and branches inside."""
    return all(isinstance(node, KernelNode | LibraryNode) for node in graph.nodes)


def _cost(nest: CanonicalNest) -> int:
    """The operations at a point of a nest."""
    forms = [expr.op.form for expr in nest_expressions(nest) if isinstance(expr, Apply)]
    return sum(form.cost for form in forms if isinstance(form, Elementwise))


_BLOCK_BARRIER = "__syncthreads();"
_WORD = "volatile tg_u32"


def declare_words(
    writer: SourceWriter, slots: Mapping[int, int], scope: Scope, memory: str
) -> None:
    """Declare the words of conditions, and a pointer to that of the entry for each."""
    if not slots:
        return
    if scope.threads > 1:
        writer.line(f"{_WORD}* const words = reinterpret_cast<{_WORD}*>({memory});")
    for condition, slot in slots.items():
        if scope.threads > 1:
            place = f"words + {WORDS * slot + WORDS - 1}"
            writer.line(f"{_WORD}* const {word(condition)} = {place};")
        else:
            writer.line(f"tg_u32 state_of_{word(condition)} = 0;")
            writer.line(f"tg_u32* const {word(condition)} = &state_of_{word(condition)};")
