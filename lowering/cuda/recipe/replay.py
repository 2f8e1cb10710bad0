"""Replay: the graph of a recipe, by the same calls of a driver that were recorded.

Nothing is planned, written or compiled. Memory is placed as for a Plan: scratch that other graphs
of the stream share, memory of the graph's own, constants that graphs of all streams read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import partial
from math import prod
from typing import Any

import numpy as np

from lowering.cuda.compilation.compile import object_code
from lowering.cuda.graph.built_graph import BuiltGraph
from lowering.cuda.graph.definition import Definition
from lowering.cuda.graph.small_inputs import ValueSlot
from lowering.cuda.interface import Allocation, Event, KernelNodeHandle, Launch
from lowering.cuda.memory.pool import interned, size_class
from lowering.cuda.open_devices import OpenDevice
from lowering.cuda.recipe.libraries import RecipeCalls
from lowering.cuda.recipe.misfit import MisfitError
from lowering.cuda.recipe.recipe import (
    ALIGNMENT,
    Allocate,
    Base,
    ConditionalKind,
    Free,
    Library,
    Recipe,
    RecipeConditional,
    RecipeKernel,
    Relocation,
)
from lowering.cuda.recipe.reports import Reported, connect_recipe
from lowering.cuda.streams.stream_state import StreamState
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.rounding import round_up
from lowering.plan.owners import NodeSlots, Slot, SlotTable
from tracegraph.generated.dataclass import dataclass
from tracegraph.ir.types import ArrayType

_MEMORY = (Base.ARENA, Base.FIXED, Base.CONSTANTS)


@dataclass(frozen=True, slots=True, eq=False)
class LoadedRecipe:
    """A recipe with its code and constants on a device, from which graphs are built.

    `kernels` has the kernel of each function, `modules` the loaded code, `ready` the event behind
    the copies that fill the constants.
    """

    recipe: Recipe
    device: OpenDevice
    modules: tuple[Any, ...]
    kernels: tuple[Any, ...]
    code_bytes: int
    constants: Allocation | None
    ready: Event | None
    calls: RecipeCalls
    inputs: tuple[Buffer, ...]
    outputs: tuple[Buffer, ...]
    """Of all results; one that is written over an input is that."""
    copied: tuple[Buffer, ...] = ()
    host_driven: bool = False

    @classmethod
    def load(cls, recipe: Recipe, data: Callable[[str], bytes], device: OpenDevice) -> LoadedRecipe:
        """Load code and constants, whose bytes `data` gives by name.

        Raises:
            MisfitError: the device refuses the code, or a kernel is not in it.
            OutOfMemoryError: the device has not enough memory.
        """
        driver = device.driver
        codes = [data(name) for name in recipe.codes]
        modules = tuple([driver.load(object_code(code)) for code in codes])
        try:
            kernels = tuple([driver.kernel(modules[f.code], f.name) for f in recipe.functions])
        except MemoryError:
            raise
        except Exception as error:
            raise MisfitError(f"the driver does not load its code: {error}") from error
        constants, ready = _constants(recipe, data, device)
        inputs = tuple(
            [Buffer("input", number, each.type) for number, each in enumerate(recipe.inputs)]
        )
        outputs = tuple(
            [
                inputs[each.over] if each.over >= 0 else Buffer("output", number, each.type)
                for number, each in enumerate(recipe.outputs)
            ]
        )
        return cls(
            recipe,
            device,
            modules,
            kernels,
            sum(map(len, codes)),
            constants,
            ready,
            RecipeCalls.prepare(recipe, inputs, outputs, device),
            inputs,
            outputs,
        )

    @property
    def name(self) -> str:
        """The name of the function."""
        return self.recipe.name

    @property
    def fresh(self) -> tuple[Buffer, ...]:
        """The outputs in new memory at each call."""
        return tuple([buffer for buffer in self.outputs if buffer.space == "output"])

    @property
    def results(self) -> list[tuple[ArrayType, int]]:
        """The types of those, and the size classes of their memory."""
        return [(interned(b.type.strong()), size_class(b.type.nbytes)) for b in self.fresh]

    @property
    def aliases(self) -> Mapping[int, int]:
        """The numbers of outputs that are written over an input, and of the inputs."""
        return {n: each.over for n, each in enumerate(self.recipe.outputs) if each.over >= 0}

    @property
    def values(self) -> Mapping[Buffer, ValueSlot]:
        """The slots of inputs that may be passed by value."""
        return {
            buffer: ValueSlot(each.slot.offset // 8, each.slot.parameter, each.slot.words)
            for buffer, each in zip(self.inputs, self.recipe.inputs, strict=True)
            if each.slot is not None
        }

    @property
    def prints(self) -> bool:
        """Whether launches print."""
        return bool(self.recipe.prints)

    @property
    def loops(self) -> bool:
        """Whether a launch may run for any time."""
        return self.recipe.waits

    @property
    def while_nodes(self) -> bool:
        """Whether its graphs have WHILE nodes."""
        conditionals = (n for n in self.recipe.nodes if isinstance(n, RecipeConditional))
        return any(node.kind is ConditionalKind.WHILE for node in conditionals)

    @property
    def per_launch(self) -> bool:
        """Whether each launch allocates scratch."""
        return self.recipe.arena.per_launch

    @property
    def parameter_bytes(self) -> int:
        """The size of the kernel parameters in one graph."""
        kernels = (node for node in self.recipe.nodes if isinstance(node, RecipeKernel))
        return 8 * sum(len(node.parameters) for node in kernels)

    def build(self, stream: StreamState) -> BuiltGraph:
        """A graph for a stream.

        Raises:
            MisfitError: the device cannot run it.
            OutOfMemoryError: the device has not enough memory.
            UnrepeatableCaptureError: a library's call cannot be captured again.
        """
        recipe = self.recipe
        definition = Definition(stream.driver, SlotTable(), recipe.name)
        with definition.building() as graph:
            return _Replay(self, stream, definition, graph).run()


def _constants(
    recipe: Recipe, data: Callable[[str], bytes], device: OpenDevice
) -> tuple[Allocation | None, Event | None]:
    if not recipe.constants:
        return None, None
    memory = device.heap.allocate(max(recipe.constant_bytes, ALIGNMENT), "constants")
    for constant in recipe.constants:
        if constant.nbytes:
            array = np.frombuffer(data(constant.data), np.uint8)
            device.timeline.write(memory.pointer + constant.offset, array)
    return memory, device.driver.record()


@dataclass(slots=True, eq=False)
class _Replay:
    """A graph while the nodes of a recipe are added to it."""

    loaded: LoadedRecipe
    stream: StreamState
    definition: Definition
    graph: Any
    bases: dict[Base, int] = field(default_factory=lambda: {Base.NUMBER: 0})
    """Where the memory of the graph is; a number is counted from 0."""
    conditions: list[tuple[Any, int]] = field(default_factory=list)
    users: dict[Buffer, list[tuple[KernelNodeHandle, int]]] = field(default_factory=dict)

    def run(self) -> BuiltGraph:
        loaded, stream, definition = self.loaded, self.stream, self.definition
        recipe, slots = loaded.recipe, definition.slots
        slots.retain(*loaded.modules)
        arena_bytes = round_up(recipe.arena.nbytes, ALIGNMENT) + loaded.calls.library_bytes
        arena = scratch = fixed = None
        if recipe.arena.per_launch:
            scratch = definition.add_memory(self.graph, arena_bytes, self._slots(recipe.nodes[0]))
        elif arena_bytes:
            arena = stream.arenas.shared(arena_bytes)
        fixed_bytes = loaded.calls.fixed_bytes
        if fixed_bytes:
            fixed = stream.heap.allocate(fixed_bytes, "constants", stream.driver)
            stream.driver.clear(fixed.pointer, fixed_bytes)
        if loaded.ready is not None and not stream.is_default:
            stream.driver.wait(loaded.ready)
        slots.retain(arena, fixed, loaded.constants)
        for base, memory in zip(_MEMORY, (arena or scratch, fixed, loaded.constants), strict=True):
            self.bases[base] = 0 if memory is None else memory.pointer
        self._name(arena, fixed)
        reported = connect_recipe(recipe, stream.timeline, slots)
        addresses = {
            buffer: self.bases[Base.FIXED] + slot.offset for buffer, slot in loaded.values.items()
        }
        libraries = loaded.calls.context(
            definition, stream, self.bases, addresses, per_launch=recipe.arena.per_launch
        )
        load = self._add_nodes(recipe, reported, addresses, scratch, libraries)
        return BuiltGraph(
            definition=definition,
            effects=reported.effects,
            users=self.users,
            load=load,
            recaptured=() if libraries is None else tuple(libraries.found),
            alignments={
                buffer: each.alignment
                for buffer, each in zip(loaded.inputs, recipe.inputs, strict=True)
            },
            addresses=addresses,
            memory=tuple([m for m in (arena, fixed, loaded.constants) if m is not None]),
            needed={
                "scratch": arena_bytes,
                "constants": sum(m.nbytes for m in (fixed, loaded.constants) if m is not None),
            },
            scratch=scratch,
            timers={},
            emitted={},
        )

    def _name(self, arena: Allocation | None, fixed: Allocation | None) -> None:
        """Name the pieces of memory."""
        slots, recipe = self.definition.slots, self.loaded.recipe
        if arena is not None and recipe.arena.nbytes:
            slots.name("arena", arena.pointer, recipe.arena.nbytes)
        if fixed is not None:
            slots.name("fixed memory", fixed.pointer, self.loaded.calls.fixed_bytes)
        if self.loaded.constants is not None:
            for number, each in enumerate(recipe.constants):
                if each.nbytes:
                    start = self.bases[Base.CONSTANTS] + each.offset
                    slots.name(f"constant {number}", start, each.nbytes)

    def _slots(self, node: Any, *keeps: Slot) -> NodeSlots:
        label = self.loaded.recipe.labels[node.label]
        return NodeSlots(label.kind, label.name, label.lines, keeps)

    def _add_nodes(
        self,
        recipe: Recipe,
        reported: Reported,
        addresses: Mapping[Buffer, int],
        scratch: Any,
        libraries: Any,
    ) -> KernelNodeHandle | None:
        """Add all nodes, each with its edges; the node that writes small inputs."""
        driver, definition = self.stream.driver, self.definition
        graphs = [self.graph]
        ends: list[tuple[Any, ...]] = []
        waiting: dict[int, list[int]] = {}
        for number, of_graph in enumerate(recipe.conditions):
            waiting.setdefault(of_graph, []).append(number)
        conditions: dict[int, tuple[Any, int]] = {}

        def opened(number: int, graph: Any) -> None:
            for each in waiting.get(number, ()):
                conditions[each] = driver.create_condition(graph)

        opened(0, self.graph)
        words = {**reported.words}
        load: KernelNodeHandle | None = None
        size = self.loaded.code_bytes

        # By number, for a base itself is hashed by a function of Python.
        starts = [self.bases.get(base) for base in Base]

        def word(place: Relocation) -> int:
            start = starts[place.base]
            if start is not None:
                return start + place.offset
            match place.base:
                case Base.INPUT:
                    return addresses.get(self.loaded.inputs[place.index], 0)
                case Base.OUTPUT:
                    return 0
                case Base.CONDITION:
                    return conditions[place.index][1]
            return words[place.base, place.index]

        for number, node in enumerate(recipe.nodes):
            if isinstance(node, RecipeKernel):
                handle = self._add_kernel(node, graphs[node.graph], ends, word, size)
                ends.append((handle.node,))
                if number == recipe.load:
                    load = handle
                continue
            if isinstance(node, Allocate):
                ends.append((scratch.node,))
                continue
            behind = [end for each in node.behind for end in ends[each]]
            slots = self._slots(node)
            match node:
                case RecipeConditional():
                    condition, _ = conditions[node.condition]
                    added, bodies = definition.add_conditional(
                        graphs[node.graph],
                        behind,
                        node.kind.word,
                        condition,
                        len(node.bodies),
                        slots,
                    )
                    ends.append((added,))
                    for inner, body in zip(node.bodies, bodies, strict=True):
                        graphs.append(body)
                        opened(inner, body)
                case Free():
                    add = partial(driver.add_free, self.graph, behind, scratch)
                    definition.add(slots, "mem_free", add)
                    ends.append(())
                case Library():
                    ends.append(
                        self.loaded.calls.capture(
                            libraries, graphs[node.graph], node.call, behind, slots
                        )
                    )
        return load

    def _add_kernel(
        self,
        node: RecipeKernel,
        graph: Any,
        ends: Sequence[tuple[Any, ...]],
        word: Callable[[Relocation], int],
        code_bytes: int,
    ) -> KernelNodeHandle:
        driver, grid = self.stream.driver, node.grid
        if node.adapts:
            grid = (min(grid[0], driver.multiprocessors), *grid[1:])
        cluster = None if node.cluster == (0, 0, 0) else node.cluster
        launch = Launch(
            self.loaded.kernels[node.function],
            grid,
            node.block,
            node.shared_bytes,
            node.cooperative,
            cluster,
        )
        if node.cooperative and not node.adapts and prod(grid) > driver.resident_blocks(launch):
            raise MisfitError(f"{prod(grid)} blocks are not resident at once on this device")
        values = [word(place) for place in node.parameters]
        owned = [_OWNED[place.base] for place in node.parameters]
        handle = self.definition.add_kernel(
            graph,
            [end for each in node.behind for end in ends[each]],
            launch,
            values,
            owned,
            self._slots(node, Slot("module", code_bytes)),
            [end for each in node.primaries for end in ends[each]],
        )
        for position, place in enumerate(node.parameters):
            if place.base is Base.INPUT:
                self.users.setdefault(self.loaded.inputs[place.index], []).append(
                    (handle, position)
                )
            elif place.base is Base.OUTPUT:
                self.users.setdefault(self.loaded.outputs[place.index], []).append(
                    (handle, position)
                )
        return handle


_OWNED = [
    base in (*_MEMORY, Base.STOP_FLAG, Base.FAILURE, Base.STEPS, Base.PRINT_RING) for base in Base
]
"""Whether addresses of a base are in memory that the graph keeps, by the number of the base."""
