"""FixedLayout: what the graph of one stream has at fixed addresses, besides arena and constants.

small inputs | pointer table | workspaces of kernels | pointer arrays | placeholders
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from lowering.cuda.compilation.plan_code import PlanCode
from lowering.cuda.graph.pointer_table import table_bytes
from lowering.cuda.graph.small_inputs import ValueSlot, slots_bytes
from lowering.cuda.libraries.library_calls import captured
from lowering.cuda.libraries.pointer_arrays import pointers_bytes
from lowering.cuda.libraries.recapture import placeholder_bytes
from lowering.plan.launch_graph import moving_buffers, moving_calls, recaptured_calls
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.rounding import round_up
from lowering.plan.nodes import LibraryNode, Node
from lowering.plan.target.hardware import ALIGNMENT
from tracegraph.generated.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of it by name: where it starts, in bytes, and its size."""

    what: str
    start: int
    nbytes: int


@dataclass(frozen=True, slots=True, eq=False)
class FixedLayout:
    """Where each of these starts, in bytes; small inputs are at 0.

    `workspaces` are those of kernel nodes. `pointer_arrays` has the first one of each library call
    that reads some; those of `moving` calls are written by each launch, and come first.
    `recaptured` has the buffers of each call that is captured again where they are. `pieces` are
    all in order.
    """

    table: int
    workspaces: Mapping[Node, int]
    pointer_arrays: Mapping[LibraryNode, int]
    placeholders: int
    nbytes: int
    moving: tuple[LibraryNode, ...]
    recaptured: Mapping[LibraryNode, tuple[Buffer, ...]]
    pieces: tuple[Piece, ...]

    @classmethod
    def of(
        cls, code: PlanCode, values: Mapping[Buffer, ValueSlot], fixed: Mapping[Buffer, int]
    ) -> FixedLayout:
        """The layout for a Plan, whose inputs and outputs with `fixed` addresses do not move."""
        plan, calls = code.plan, code.calls
        moving = moving_calls(plan.graph, fixed)
        recaptured = {n: moving_buffers(n, fixed) for n in recaptured_calls(plan.graph, fixed)}
        still = calls.keys() - set(moving)
        direct = [node for node in calls if node in still and not captured(node).direct]
        pieces: list[Piece] = []
        end = 0

        def put(what: str, nbytes: int) -> int:
            """Put a piece at the end; where it starts."""
            nonlocal end
            pieces.append(Piece(what, end, nbytes))
            end += nbytes
            return pieces[-1].start

        def put_aligned(what: str, nbytes: int) -> int:
            nonlocal end
            end = round_up(end, ALIGNMENT)
            return put(what, nbytes)

        put("small inputs", slots_bytes(list(values.values())))
        table = put_aligned("pointer table", table_bytes(plan.indirect))
        starts: dict[Hashable, int] = {}
        workspaces: dict[Node, int] = {}
        for node, kernel in code.unit.kernels.items():
            if kernel.workspace_bytes:
                key = kernel.workspace_key(node)
                if key not in starts:
                    starts[key] = put_aligned("workspace", kernel.workspace_bytes)
                workspaces[node] = starts[key]
        end = round_up(end, ALIGNMENT)
        arrays = {
            node: put("pointer arrays", pointers_bytes(node.call))
            for node in (*moving, *direct)
            if node.call.batches
        }
        most = max(map(placeholder_bytes, recaptured.values()), default=0)
        placeholders = put_aligned("placeholders", most)
        return cls(table, workspaces, arrays, placeholders, end, moving, recaptured, tuple(pieces))
