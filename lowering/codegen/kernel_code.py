"""Kernel code: how a kernel is launched, and the declarations of its parameters."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Set

from lowering.codegen.kernel_parameters import (
    Answer,
    CallRingAddress,
    CallSiteNumber,
    ConditionHandle,
    FailureWord,
    Parameter,
    PrintRingAddress,
    PrintSiteNumber,
    StepCount,
    StopFlagAddress,
    TableEntry,
    WorkspaceAddress,
)
from lowering.codegen.preamble import c_type
from lowering.codegen.source_writer import SourceWriter
from lowering.plan.nests.buffer import Buffer, overlap
from lowering.plan.nodes import Node
from tracegraph.generated.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class PeerTable:
    """The table of the devices along `axes`, `count` of them, at `offset` bytes of a workspace.

    It has the number of its device among them, and then the address of the workspace of each, as
    words of 64 bits.
    """

    offset: int
    axes: tuple[str, ...]
    count: int


@dataclass(frozen=True, slots=True)
class KernelCode:
    """How a kernel node is launched: the function's name, its parameters and geometry."""

    name: str
    parameters: tuple[Parameter, ...]
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int
    cluster: int = 1
    """Blocks of a thread block cluster, on devices that have them."""
    cooperative: bool = False
    """Whether its blocks wait for each other, and any number of them does."""
    peers: tuple[PeerTable, ...] = ()
    """The devices of a mesh with which it exchanges arrays while it runs."""
    together: int = 0
    """How many blocks, the first ones, wait for one another; those behind them wait for none."""
    in_turn: bool = False
    """Whether launches of the same function run one after the other, also those of other nodes, so
    that they have one workspace."""

    def workspace_key(self, node: Node) -> Hashable:
        """What nodes with the same workspace have in common: that of a node, if it has its own."""
        return (self.name, self.peers) if self.in_turn else node

    @property
    def workspace_bytes(self) -> int:
        """Bytes of workspace that the node needs, 0 if none."""
        return sum(p.nbytes for p in self.parameters if isinstance(p, WorkspaceAddress))


FEW_BLOCKS = 16
"""Blocks up to which a kernel triggers programmatic dependent launch at its begin.

A chain of kernels of 8 blocks takes 0.67 us each with the trigger and 0.72 without (H200). In
larger grids each block pays for the trigger, and the dependent kernel occupies their slots.
"""

NAME = "KERNEL_NAME"
"""Placeholder for the function's name, so that texts can be compared."""


_SPELLING: Mapping[type, tuple[str, str]] = {
    ConditionHandle: ("tg_u64", "condition"),
    StopFlagAddress: ("const volatile tg_u32*", "stop"),
    FailureWord: ("volatile tg_u64*", "failure"),
    StepCount: ("volatile tg_i64*", "steps"),
    PrintRingAddress: ("volatile tg_ring*", "ring"),
    PrintSiteNumber: ("tg_u64", "site"),
    CallRingAddress: ("volatile tg_ring*", "calls"),
    CallSiteNumber: ("tg_u64", "callback"),
    Answer: ("volatile tg_answer*", "answer"),
}
"""The C++ type of each kind of parameter, and the prefix of its names."""


def named(parameters: tuple[Parameter, ...]) -> dict[Parameter, str]:
    """The C++ names of parameters that are not buffers, numbered within their kind."""
    names: dict[Parameter, str] = {}
    for parameter in parameters:
        number = sum(type(other) is type(parameter) for other in names)
        names[parameter] = f"{_SPELLING[type(parameter)][1]}{number}"
    return names


def declare_parameters(
    writer: SourceWriter,
    buffers: Mapping[Buffer, str],
    written: Collection[Buffer],
    offsets: Mapping[Buffer, int],
    indirect: Set[Buffer],
    workspace: int,
) -> tuple[str, tuple[Parameter, ...]]:
    """The declarations of a kernel's parameters, and the parameters: buffers by their names, the
    other ones that the writer knows, and a workspace of some bytes.

    Pointers to `indirect` buffers are read from the pointer table first.
    """
    declared: list[str] = []
    parameters: list[Parameter] = []
    for number, (buffer, name) in enumerate(buffers.items()):
        declaration = _pointer(buffer, name, written, offsets)
        if buffer in indirect:
            kind = c_type(buffer.type.dtype)
            writer.line(f"{declaration} = ({kind}*)*entry{number};")
            declared.append(f"const tg_u64* entry{number}")
            parameters.append(TableEntry(buffer))
        else:
            declared.append(declaration)
            parameters.append(buffer)
    for parameter, name in writer.names.items():
        declared.append(f"{_SPELLING[type(parameter)][0]} {name}")
        parameters.append(parameter)
    if workspace:
        declared.append("unsigned char* workspace")
        parameters.append(WorkspaceAddress(workspace))
    return ", ".join(declared), tuple(parameters)


def declare_shared_memory(writer: SourceWriter, nbytes: int) -> None:
    """Declare the shared memory of a block, if it has any."""
    if nbytes:
        writer.line("extern __shared__ __align__(16) unsigned char shared[];")


def function(
    declared: str, body: str, threads: int, *, cluster: int = 1, resident: int = 1, dependents: bool
) -> str:
    """The text of a kernel called `NAME`.

    `resident` blocks fit on a multiprocessor. With `dependents`, kernels that depend on it may
    start at once.
    """
    bounds = f"__launch_bounds__({threads}{f', {resident}' if resident > 1 else ''})"
    attribute = f"TG_CLUSTER({cluster}) " if cluster > 1 else ""
    begin = "  tg_wait_for_primaries();\n"
    if dependents:
        begin += "  tg_launch_dependents();\n"
    head = f'extern "C" __global__ void {attribute}{bounds}'
    return f"{head}\n{NAME}({declared}) {{\n{begin}{body}}}\n"


def _pointer(
    buffer: Buffer, name: str, written: Collection[Buffer], offsets: Mapping[Buffer, int]
) -> str:
    """The declaration of a pointer. Loads through `const __restrict__` use the read-only cache."""
    kind = c_type(buffer.type.dtype)
    if buffer in written:
        return f"{kind}* {name}"
    if any(overlap(buffer, other, offsets) for other in written):
        return f"const {kind}* {name}"
    return f"const {kind}* __restrict__ {name}"
