"""Recipe: all that a CUDA graph is built from, as records of numbers, names and code.

A recipe has the calls of `lowering.cuda.interface` that a build makes, in order, with addresses as
relocations: a base, which its loader has, and an offset in bytes. So a graph is built from it
without a planner, a code generator or a compiler, by Python here or by any other language.

    Recipe
      inputs, outputs     what a call binds
      arena, fixed_bytes, constants    memory that the graph has for itself
      codes, functions    cubins, and the kernels in them
      conditions          those of conditional nodes, each of one graph
      nodes               in the order in which they are added
      calls, buffers      calls of libraries, which the loader captures
      failures, monitors, prints       what launches report

Graphs have numbers: 0 is the whole graph, others are bodies of conditional nodes, in the order in
which these are added. Nodes have their positions in `nodes`. All numbers are unsigned, and fit into
64 bits; -1 stands for none. A kernel parameter is always a cell of eight bytes, little-endian.

`stored` reads the types of the fields, so annotations are evaluated here, not kept as text.
"""

from collections.abc import Iterator, Mapping
from enum import IntEnum
from typing import Any, Literal, cast

from tracegraph.generated.dataclass import dataclass
from tracegraph.ir.effects import Failure, PrintFormat
from tracegraph.ir.record import record
from tracegraph.ir.types import ArrayType
from tracegraph.progress import Monitor

FORMAT = 1
"""The version of these records. A change that an older reader would misread counts it up."""

NONE = -1

ALIGNMENT = 256
"""Bytes: the bases `ARENA`, `FIXED` and `CONSTANTS` are multiples of it."""

Extents = tuple[int, int, int]

ConditionalWord = Literal["if_else", "switch", "while"]


class Base(IntEnum):
    """What the offset of a `Relocation` is added to; `index` says which one of several."""

    NUMBER = 0
    """Nothing: the offset is the word itself."""
    INPUT = 1
    """The address of input `index` in a call."""
    OUTPUT = 2
    """The address of output `index` in a call; never one that is written over an input."""
    ARENA = 3
    """Scratch: kept between launches, or what the memory node of the graph allocates."""
    FIXED = 4
    """Memory that is zeroed when the graph is built, and keeps its content between launches: small
    inputs, tables of addresses, counters of kernels."""
    CONSTANTS = 5
    """The constants, which nothing writes to."""
    CONDITION = 6
    """No address: the handle of condition `index`."""
    STOP_FLAG = 7
    """A word of 32 bits in device memory: loops end while it is not 0."""
    FAILURE = 8
    """A word of 64 bits that the host reads: 0, or 1 + the number in `failures` of the first one.
    It is 0 before a launch."""
    STEPS = 9
    """A word of 64 bits that the host reads: the steps that monitor `index` has counted."""
    PRINT_RING = 10
    """The ring of prints, which the host reads."""
    PRINT_SITE = 11
    """No address: the number under which the ring knows print `index`."""


@record
class Relocation:
    """A word of 64 bits: a base and an offset. Of a number, the offset is that number."""

    base: Base
    index: int = 0
    offset: int = 0


@record
class InputSlot:
    """Where a small input has its value in each launch: in parameters of the `load` kernel.

    The kernel copies the `words` parameters from the number `parameter` on to `offset` of `FIXED`,
    and that is then the address of the input. Bytes behind the value in its last word are 0. A call
    that has the input in device memory passes its address instead, and the slot is not used.
    """

    offset: int
    parameter: int
    words: int


@record
class RecipeInput:
    """An argument: contiguous, in row-major order, at an address that is a multiple of `alignment`.

    `slot` is None if it is always in device memory.
    """

    type: ArrayType
    alignment: int = 1
    slot: InputSlot | None = None


@record
class RecipeOutput:
    """A result, in new memory whose address is a multiple of 256; or written over an input.

    `over` is the number of that input, which a caller must own, or -1.
    """

    type: ArrayType
    over: int = NONE


@record
class Arena:
    """Scratch, besides that of libraries: its bytes; whether each launch allocates it, by a memory
    node of the graph, and frees it.
    """

    nbytes: int
    per_launch: bool = False


@record
class RecipeConstant:
    """A constant: its offset from `CONSTANTS`, a multiple of 256, its bytes, the name of its data
    in the file.
    """

    offset: int
    nbytes: int
    data: str


@dataclass(frozen=True, slots=True)
class RecipeFunction:
    """A kernel: the number of the cubin that it is in, and its name there."""

    code: int
    name: str


@dataclass(frozen=True, slots=True)
class Label:
    """What a node is to the user: a word for it, its name, and the lines of the program."""

    kind: str
    name: str
    lines: str


@record
class RecipeKernel:
    """A kernel node of graph `graph`.

    `cluster` is (0, 0, 0) unless the launch says how large clusters are. Of a `cooperative` one all
    blocks are resident at the same time; one that `adapts` is launched with at most as many blocks
    along x as the device has multiprocessors. Dynamic shared memory of more than 48 KiB must be
    allowed first, as an attribute of the function.

    It depends on the nodes `behind`, by full edges, and on the kernels `primaries` by programmatic
    ones: from the port CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC, of the type PROGRAMMATIC.
    """

    graph: int
    function: int
    grid: Extents
    block: Extents
    cluster: Extents
    shared_bytes: int
    cooperative: bool
    adapts: bool
    parameters: tuple[Relocation, ...]
    behind: tuple[int, ...]
    primaries: tuple[int, ...]
    label: int


class ConditionalKind(IntEnum):
    """Kinds of conditional nodes."""

    IF_ELSE = 0
    """Two bodies: the first one runs if the condition is not 0, else the second."""
    WHILE = 1
    """One body, which runs while the condition is not 0."""
    SWITCH = 2
    """The body with the number of the condition runs, if there is one."""

    @property
    def word(self) -> ConditionalWord:
        """What drivers and flat files call it."""
        return cast(ConditionalWord, self.name.lower())


@record
class RecipeConditional:
    """A conditional node of a graph, and the numbers of its bodies."""

    graph: int
    kind: ConditionalKind
    condition: int
    bodies: tuple[int, ...]
    behind: tuple[int, ...]
    label: int


@record
class Allocate:
    """The memory node that allocates the arena. It is node 0, and depends on none."""

    label: int


@record
class Free:
    """The memory node that frees the arena."""

    behind: tuple[int, ...]
    label: int


@record
class Library:
    """A call of a library, number `call`, which becomes nodes when it is captured. Others that
    depend on it depend on the last of these.
    """

    graph: int
    call: int
    behind: tuple[int, ...]
    label: int


Node = RecipeKernel | RecipeConditional | Allocate | Free | Library


@record
class BufferPlace:
    """A buffer that calls of libraries access."""

    place: Relocation
    type: ArrayType


@record
class RecipeCall:
    """A call of a library: the class in `lowering.plan.calls`, and its fields as JSON, in which
    buffers are numbers in `buffers`.

    It uses scratch `workspace` of those that the loader puts behind the arena, each
    as large as the greatest need. `pointers` is where its pointer arrays are, if it has some; they
    are `written` when the graph is built, unless kernels write them. A call with `moving` buffers
    is captured again when they move.
    """

    kind: str
    fields: Mapping[str, Any]
    workspace: int
    pointers: Relocation | None
    written: bool
    moving: tuple[int, ...]


@record
class Recipe:
    """A graph for devices of one architecture.

    `arch` is theirs, such as ``"sm_90"``; drivers are of `cuda` (major, minor) or later. `needs`
    are the features of graphs that a device might lack, by their names in
    `lowering.plan.target.features`. `load` is the kernel node that writes small inputs, or -1.
    `waits` says that a launch may run for any time: it has loops.
    """

    name: str
    arch: str
    cuda: tuple[int, int]
    needs: tuple[str, ...]
    inputs: tuple[RecipeInput, ...]
    outputs: tuple[RecipeOutput, ...]
    arena: Arena
    fixed_bytes: int
    constants: tuple[RecipeConstant, ...]
    codes: tuple[str, ...]
    """The names of the cubins in the file."""
    functions: tuple[RecipeFunction, ...]
    conditions: tuple[int, ...]
    """The graph of each condition: that of its conditional node."""
    nodes: tuple[Node, ...]
    labels: tuple[Label, ...]
    load: int = NONE
    waits: bool = False
    buffers: tuple[BufferPlace, ...] = ()
    calls: tuple[RecipeCall, ...] = ()
    failures: tuple[Failure, ...] = ()
    monitors: tuple[Monitor, ...] = ()
    prints: tuple[PrintFormat, ...] = ()
    records: tuple[tuple[ArrayType, ...], ...] = ()
    """The types of the arguments of each print, in the ring one behind the other, each from a
    multiple of 16 bytes on, behind the number of the site and the bytes of the record."""

    probe: int = NONE
    """The cubin of kernels that try features of `needs` which take a launch to try, or -1. It is
    not loaded but for that."""

    def users(self, base: Base, index: int) -> Iterator[tuple[int, int]]:
        """The kernel nodes and parameters that hold the address of an input or an output."""
        for number, node in enumerate(self.nodes):
            if isinstance(node, RecipeKernel):
                for position, place in enumerate(node.parameters):
                    if place.base is base and place.index == index:
                        yield number, position

    @property
    def graphs(self) -> int:
        """How many graphs there are: the whole one, and all bodies."""
        return 1 + sum(
            len(node.bodies) for node in self.nodes if isinstance(node, RecipeConditional)
        )

    @property
    def constant_bytes(self) -> int:
        """The size of the memory of constants."""
        return max((constant.offset + constant.nbytes for constant in self.constants), default=0)
