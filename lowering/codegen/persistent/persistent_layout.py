"""Layout of a persistent kernel: its phases, and where what they share is."""

from __future__ import annotations

from collections.abc import Mapping

from lowering.codegen.geometry_records import LaunchGeometry, shared_bytes, workspace_bytes
from lowering.codegen.nest_kinds import CanonicalNest, canonical
from lowering.codegen.nests import buffers_of
from lowering.codegen.persistent.peer_rooms import PeerLayout, peer_layout
from lowering.codegen.persistent.phase_geometry import phase_geometry
from lowering.plan.conditional_nodes import ConditionalNode, WhileNode
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.rounding import round_up
from lowering.plan.nodes import KernelNode, LibraryNode, Node, walk
from lowering.plan.persistent_kernel import PersistentKernelNode
from lowering.plan.target.hardware import ALIGNMENT, VECTOR_BYTES, WORD_BYTES
from tracegraph.generated.dataclass import dataclass

WORDS = 3
"""Words of a condition: two that take turns in the steps of a loop, and one for its entry. Branches
use that alone."""


@dataclass(frozen=True, slots=True)
class PersistentLayout:
    """The phases of a kernel, and where what they share is.

    `nests` has the canonical nests of each kernel node, and `beside` those of other blocks; `slots`
    has the number of each condition. Shared memory has that of phases first, then the words of
    conditions of one block at `words`, and from `kept` on what a block keeps. The workspace of
    several blocks begins with the count of arrivals and the words; `workspaces` has the places of
    nests that need some. Exchanges with other devices are behind these.
    """

    inside: tuple[Node, ...]
    nests: Mapping[KernelNode, tuple[CanonicalNest, ...]]
    geometries: Mapping[CanonicalNest, LaunchGeometry]
    slots: Mapping[int, int]
    workspaces: Mapping[CanonicalNest, str]
    workspace: int
    words: int
    kept: int
    peers: PeerLayout
    beside: tuple[CanonicalNest, ...] = ()

    @classmethod
    def of(cls, node: PersistentKernelNode) -> PersistentLayout:
        """The layout of a persistent kernel."""
        scope, inside = node.scope, tuple(walk(node.graph))
        nests = {
            each: tuple(map(canonical, each.kernel.nests))
            for each in inside
            if isinstance(each, KernelNode)
        }
        division, beside = node.divided, tuple[CanonicalNest, ...]()
        if division is not None:
            (kernel,) = nests
            nests = {kernel: tuple(map(canonical, division.ends))}
            beside = tuple(map(canonical, division.inside))
        conditions = [each.condition for each in inside if isinstance(each, ConditionalNode)]
        slots = {condition: number for number, condition in enumerate(dict.fromkeys(conditions))}
        geometries = {nest: phase_geometry(nest, scope) for own in nests.values() for nest in own}
        workspaces: dict[CanonicalNest, str] = {}
        workspace = ALIGNMENT + round_up(words_bytes(slots), ALIGNMENT) if scope.blocks > 1 else 0
        for nest, geometry in geometries.items():
            if nbytes := workspace_bytes(geometry):
                workspaces[nest] = f"workspace + {workspace}"
                workspace += round_up(nbytes, ALIGNMENT)
        exchanging = [each for each in inside if isinstance(each, LibraryNode)]
        peers = peer_layout(exchanging, scope, workspace, alone=node.exchange is not None)
        words = round_up(max(map(shared_bytes, geometries.values()), default=0), VECTOR_BYTES)
        in_shared_memory = scope.blocks == 1 and scope.threads > 1
        kept = words + (words_bytes(slots) if in_shared_memory else 0)
        found = inside, nests, geometries, slots, workspaces, peers.end, words, kept, peers
        return cls(*found, beside)


def words_bytes(slots: Mapping[int, int]) -> int:
    """Bytes of the words of conditions."""
    return round_up(len(slots) * WORDS * WORD_BYTES, VECTOR_BYTES)


def accessed(layout: PersistentLayout) -> tuple[list[Buffer], list[Buffer]]:
    """The buffers that the phases read, and those that they write, in order of first use."""
    nests = [*layout.geometries, *layout.beside]
    read, written = (dict.fromkeys(found) for found in buffers_of(nests))
    for node in layout.inside:
        if isinstance(node, WhileNode) and node.entry is not None:
            read[node.entry] = None
        elif isinstance(node, LibraryNode) or node.may_be_phase:  # a group may be larger than any
            read.update(dict.fromkeys(node.reads))
            written.update(dict.fromkeys(node.writes))
    return list(read), list(written)
