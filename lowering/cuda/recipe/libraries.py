"""Libraries: the calls of a recipe, which are prepared and captured here as those of a Plan.

What serves them is imported where a recipe has some.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

from lowering.cuda.recipe.misfit import MisfitError
from lowering.cuda.recipe.recipe import ALIGNMENT, Base, Recipe, RecipeCall
from lowering.plan.nests.buffer import Buffer, Space
from lowering.plan.nests.rounding import round_up
from lowering.plan.owners import NodeSlots
from tracegraph.errors import MalformedTargetError, OutOfMemoryError
from tracegraph.generated.dataclass import dataclass

if TYPE_CHECKING:
    from lowering.cuda.graph.definition import Definition
    from lowering.cuda.graph.library_nodes import LibraryContext
    from lowering.cuda.open_devices import OpenDevice
    from lowering.cuda.streams.stream_state import StreamState
    from lowering.plan.calls.library_call import LibraryCall

_SPACES: Mapping[Base, Space] = {
    Base.ARENA: "scratch",
    Base.FIXED: "scratch",
    Base.CONSTANTS: "const",
}


@dataclass(frozen=True, slots=True, eq=False)
class RecipeCalls:
    """The calls of a recipe, as nodes of a Plan have them, prepared by their libraries.

    `library_bytes` are their workspaces, which follow scratch, and `fixed_bytes` the memory that is
    zeroed, with the placeholders of calls that are captured again behind it.
    """

    recipe: Recipe
    fixed_bytes: int
    library_bytes: int = 0
    nodes: tuple[Any, ...] = ()
    prepared: Mapping[Any, Any] = field(default_factory=dict)
    places: Mapping[Buffer, tuple[Base, int]] = field(default_factory=dict)
    moving: Mapping[Any, tuple[Buffer, ...]] = field(default_factory=dict)

    @classmethod
    def prepare(
        cls,
        recipe: Recipe,
        inputs: Sequence[Buffer],
        outputs: Sequence[Buffer],
        device: OpenDevice,
    ) -> RecipeCalls:
        """The calls of a recipe for a device.

        Raises:
            MalformedTargetError: one is none.
            MisfitError: its library is not there.
            OutOfMemoryError: the device has not enough memory.
        """
        if not recipe.calls:
            return cls(recipe, recipe.fixed_bytes)
        from lowering.cuda.libraries.library_calls import prepared_calls, workspace_bytes
        from lowering.cuda.libraries.recapture import placeholder_bytes
        from lowering.cuda.recipe.calls import call_from_json
        from lowering.plan.nodes import LibraryNode

        places: dict[Buffer, tuple[Base, int]] = {}
        buffers: list[Buffer] = []
        for number, each in enumerate(recipe.buffers):
            place = each.place
            bound = {Base.INPUT: inputs, Base.OUTPUT: outputs}.get(place.base)
            if bound is not None:
                buffers.append(bound[place.index])
                if place.offset or buffers[-1].type != each.type:
                    raise MalformedTargetError("a buffer of a call is a part of an argument")
                continue
            buffers.append(Buffer(_SPACES[place.base], number, each.type))
            places[buffers[-1]] = place.base, place.offset
        nodes = tuple(
            [
                LibraryNode(call_from_json(c.kind, c.fields, buffers), workspace=c.workspace)
                for c in recipe.calls
            ]
        )
        small = [b for b, each in zip(inputs, recipe.inputs, strict=True) if each.slot is not None]
        known = {*places, *small}
        for node, recorded in zip(nodes, recipe.calls, strict=True):
            _require_known(node.call, recorded, buffers, known)
        try:
            prepared = prepared_calls(nodes, device)
        except OutOfMemoryError:
            raise
        except (ImportError, OSError, RuntimeError) as error:
            raise MisfitError(f"a library that it calls is not there: {error}") from error
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise MalformedTargetError(f"a library has no such call: {error}") from error
        moving = {
            node: tuple([buffers[number] for number in call.moving])
            for node, call in zip(nodes, recipe.calls, strict=True)
            if call.moving
        }
        most = max(map(placeholder_bytes, moving.values()), default=0)
        fixed = round_up(recipe.fixed_bytes, ALIGNMENT) + most
        return cls(recipe, fixed, workspace_bytes(prepared), nodes, prepared, places, moving)

    def context(
        self,
        definition: Definition,
        stream: StreamState,
        bases: Mapping[Base, int],
        addresses: Mapping[Buffer, int],
        *,
        per_launch: bool,
    ) -> LibraryContext | None:
        """Where a graph has what its calls need; None if there are none."""
        if not self.nodes:
            return None
        from lowering.cuda.graph.library_nodes import LibraryContext
        from lowering.cuda.libraries.library_calls import outside, workspace_offsets

        start = bases[Base.ARENA] + round_up(self.recipe.arena.nbytes, ALIGNMENT)
        workspaces = workspace_offsets(self.prepared)
        calls = list(zip(self.nodes, self.recipe.calls, strict=True))
        warm_up = None
        if stream.is_default:
            most = max(outside(per_launch, node)[1] for node in self.nodes)
            warm_up = stream.pool.take(self.library_bytes + most)
        return LibraryContext(
            definition=definition,
            driver=stream.driver,
            calls=self.prepared,
            addresses={
                **addresses,
                **{b: bases[base] + offset for b, (base, offset) in self.places.items()},
            },
            workspaces={node: start + at for node, at in workspaces.items()},
            pointer_arrays={
                node: bases[Base.FIXED] + call.pointers.offset
                for node, call in calls
                if call.pointers is not None
            },
            moving=tuple([node for node, call in calls if not call.written]),
            recaptured=self.moving,
            placeholders=bases[Base.FIXED] + round_up(self.recipe.fixed_bytes, ALIGNMENT),
            warm_up=warm_up,
            library_bytes=self.library_bytes,
            per_launch=per_launch,
            found=[],
        )

    def capture(
        self,
        context: LibraryContext,
        graph: Any,
        number: int,
        behind: Sequence[Any],
        slots: NodeSlots,
    ) -> tuple[Any, ...]:
        """Capture a call; its last nodes.

        Raises:
            UnrepeatableCaptureError: it would be other kernels elsewhere.
        """
        from lowering.cuda.graph.library_nodes import capture_library

        return capture_library(context, graph, self.nodes[number], behind, slots)


def _require_known(
    call: LibraryCall, recorded: RecipeCall, buffers: Sequence[Buffer], known: set[Buffer]
) -> None:
    """Raise MalformedTargetError if a call has an array whose address is not known."""
    moving = {buffers[number] for number in recorded.moving}
    by_pointer = set() if recorded.written else {array.buffer for array in call.batches}
    for array in call.operands:
        if array.buffer not in known | moving | by_pointer:
            raise MalformedTargetError("the address of an argument of a library call is not known")
