"""Recorder: what stands in for a driver, a device and a graph, and notes the nodes that are added.

An address is a number that knows its place, also after an offset was added to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from hashlib import sha256
from typing import Any

from lowering.codegen.preamble import preamble
from lowering.codegen.units import translation_unit
from lowering.cuda.compilation.compile import cubin, custom_cubin
from lowering.cuda.compilation.feature_probes import KERNELS
from lowering.cuda.compilation.modules import Module
from lowering.cuda.interface import Launch
from lowering.cuda.recipe.recipe import (
    Base,
    BufferPlace,
    ConditionalKind,
    Label,
    RecipeCall,
    RecipeConditional,
    RecipeFunction,
    RecipeKernel,
    Relocation,
)
from lowering.plan.nests.buffer import Buffer
from lowering.plan.owners import NodeSlots, SlotTable
from tracegraph.generated.dataclass import dataclass

_KINDS: Mapping[str, ConditionalKind] = {kind.word: kind for kind in ConditionalKind}

_ANY_NUMBER = 1 << 31
"""In place of limits that only a device has."""


class Address(int):
    """An address, or a handle, that knows its place."""

    place: Relocation

    def __new__(cls, place: Relocation) -> Address:
        """An address at a place."""
        found = super().__new__(cls, 1 + place.offset)  # never null
        found.place = place
        return found

    def __add__(self, offset: int) -> Address:
        return Address(replace(self.place, offset=self.place.offset + int(offset)))


@dataclass(frozen=True, slots=True)
class RecordedKernel:
    """A kernel node by its number."""

    node: int


@dataclass(slots=True, eq=False)
class Recorder:
    """In place of a driver, a device and a graph: it notes what is added. Nodes are numbers."""

    arch: str
    multiprocessors: int = _ANY_NUMBER
    stored_conditions: None = None
    slots: SlotTable = field(default_factory=SlotTable)
    kinds: list[str] = field(default_factory=list)
    codes: list[str] = field(default_factory=list)
    data: dict[str, bytes] = field(default_factory=dict)
    functions: dict[RecipeFunction, int] = field(default_factory=dict)
    conditions: list[int] = field(default_factory=list)
    nodes: list[Any] = field(default_factory=list)
    labels: dict[Label, int] = field(default_factory=dict)
    calls: list[RecipeCall] = field(default_factory=list)
    buffer_places: list[BufferPlace] = field(default_factory=list)
    buffers: dict[Buffer, int] = field(default_factory=dict)
    exact: set[Launch] = field(default_factory=set)
    graphs: int = 0

    # Code

    @property
    def driver(self) -> Recorder:
        """Itself, as the driver of a device."""
        return self

    def compiled(
        self, functions: Mapping[str, str], definitions: Sequence[str]
    ) -> dict[str, Module]:
        """The modules of functions, by name: in one unit, so that files depend on no machine."""
        if not functions:
            return {}
        code = cubin(translation_unit(functions.values(), definitions), self.arch)
        return dict.fromkeys(functions, Module(self.load(code), self.code_bytes(code)))

    def compiled_probes(self) -> Any:
        """The kernels that try what devices can do."""
        return cubin(preamble(KERNELS) + KERNELS, self.arch)

    def compile_custom(self, source: str, name: str, include_paths: Sequence[str]) -> Any:
        """The cubin of a unit that was written by hand."""
        return custom_cubin(source, self.arch, name, include_paths)

    def code_bytes(self, code: Any) -> int:
        """The size of a cubin."""
        return len(code.code)

    def load(self, code: Any) -> int:
        """The number of a cubin."""
        data = bytes(code.code)
        name = f"{sha256(data).hexdigest()[:32]}.cubin"
        if name not in self.data:
            self.data[name] = data
            self.codes.append(name)
        return self.codes.index(name)

    def kernel(self, module: int, name: str) -> int:
        """The number of a function."""
        return self.functions.setdefault(RecipeFunction(module, name), len(self.functions))

    def parameter_sizes(self, kernel: int) -> None:
        """They are not known."""

    def resident_blocks(self, launch: Launch) -> int:
        """That is seen where the recipe is loaded: the launch must be as it is."""
        self.exact.add(launch)
        return _ANY_NUMBER

    # Nodes

    def new_graph(self) -> int:
        """The number of another graph."""
        self.graphs += 1
        return self.graphs - 1

    def create_condition(self, graph: int) -> tuple[int, Address]:
        """A condition of a graph, and its handle."""
        self.conditions.append(graph)
        number = len(self.conditions) - 1
        return number, Address(Relocation(Base.CONDITION, number))

    def label(self, slots: NodeSlots) -> int:
        """The number of what a node is to the user."""
        label = Label(slots.kind, slots.name, slots.lines)
        return self.labels.setdefault(label, len(self.labels))

    def enter(self, node: Any) -> int:
        """The number of a node that is added."""
        self.nodes.append(node)
        return len(self.nodes) - 1

    def add_kernel(
        self,
        graph: int,
        dependencies: Sequence[int],
        launch: Launch,
        values: Sequence[int],
        owned: Sequence[bool],
        node: NodeSlots,
        pdl: Sequence[int] = (),
    ) -> RecordedKernel:
        """A kernel node; of one whose grid was limited by what is unknown, the grid adapts."""
        places = tuple(map(place_of, values, owned))
        kernel = RecipeKernel(
            graph=graph,
            function=launch.kernel,
            grid=launch.grid,
            block=launch.block,
            cluster=launch.cluster or (0, 0, 0),
            shared_bytes=launch.shared_bytes,
            cooperative=launch.cooperative,
            adapts=launch.cooperative and launch not in self.exact,
            parameters=places,
            behind=tuple(dependencies),
            primaries=tuple(pdl),
            label=self.label(node),
        )
        return RecordedKernel(self.enter(kernel))

    def add_conditional(
        self,
        graph: int,
        dependencies: Sequence[int],
        kind: str,
        condition: int,
        branches: int,
        node: NodeSlots,
    ) -> tuple[int, tuple[int, ...]]:
        """A conditional node and its bodies."""
        bodies = tuple([self.new_graph() for _ in range(branches)])
        number = self.enter(
            RecipeConditional(
                graph, _KINDS[kind], condition, bodies, tuple(dependencies), self.label(node)
            )
        )
        return number, bodies

    def number_of(self, buffer: Buffer, address: int) -> int:
        """The number of a buffer of a library's call."""
        if buffer not in self.buffers:
            self.buffers[buffer] = len(self.buffers)
            self.buffer_places.append(BufferPlace(place_of(address), buffer.type.strong()))
        return self.buffers[buffer]


def place_of(value: int, owned: bool = True) -> Relocation:
    """The place of a word that a kernel is passed; that of a number is the number itself."""
    if not isinstance(value, Address):
        return Relocation(Base.NUMBER, 0, int(value) % 2**64)
    if not owned and value.place.base in (Base.ARENA, Base.FIXED, Base.CONSTANTS):
        return Relocation(Base.NUMBER)  # of an empty array
    return value.place
