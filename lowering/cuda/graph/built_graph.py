"""Built graphs: what calls need to know of a graph, however it came about."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from lowering.cuda.effects.launch_effects import Effects
from lowering.cuda.graph.definition import Definition
from lowering.cuda.graph.small_inputs import ValueSlot
from lowering.cuda.interface import Allocation, GraphMemory, KernelNodeHandle, Timer
from lowering.plan.nests.buffer import Buffer
from tracegraph.generated.dataclass import dataclass
from tracegraph.ir.events import Section
from tracegraph.ir.types import ArrayType

if TYPE_CHECKING:
    from lowering.cuda.libraries.recapture import RecapturedCall
    from lowering.cuda.open_devices import OpenDevice
    from lowering.cuda.streams.stream_state import StreamState

Timers = Mapping[Section, Mapping[str, Timer]]
"""The events at the start and the end of each timed section."""

Users = Mapping[Buffer, Sequence[tuple[KernelNodeHandle, int]]]
"""The kernel nodes and parameter positions that hold the address of a buffer that calls bind."""


@dataclass(frozen=True, slots=True, eq=False)
class BuiltGraph:
    """A complete graph for one stream, and what a call writes to in it.

    `addresses` has those of slots of small inputs. `recaptured` are the library calls that hold
    addresses as well as the `users`, and `alignments` what they need. `load` is the node that
    writes the values of small inputs. `memory` is what the graph has for itself, and `needed` its
    bytes by purpose; `scratch` is what each launch allocates. `emitted` are the kinds of nodes by
    what they were added for, where that does not say it.
    """

    definition: Definition
    effects: Effects | None
    users: Users
    load: KernelNodeHandle | None
    recaptured: tuple[RecapturedCall, ...]
    alignments: Mapping[Buffer, int]
    addresses: Mapping[Buffer, int]
    memory: tuple[Allocation, ...]
    needed: Mapping[str, int]
    scratch: GraphMemory | None
    timers: Timers
    emitted: Mapping[Any, tuple[str, ...]]


class Buildable(Protocol):
    """What graphs for the streams of a device are built from: a compiled Plan, or a recipe."""

    @property
    def name(self) -> str:
        """The name of the function."""

    @property
    def device(self) -> OpenDevice:
        """The device."""

    @property
    def inputs(self) -> Sequence[Buffer]:
        """The inputs."""

    @property
    def copied(self) -> Collection[Buffer]:
        """The inputs and outputs that each launch copies."""

    @property
    def fresh(self) -> Sequence[Buffer]:
        """The outputs in new memory at each call."""

    @property
    def results(self) -> Sequence[tuple[ArrayType, int]]:
        """The types of those, and the size classes of their memory."""

    @property
    def aliases(self) -> Mapping[int, int]:
        """The numbers of outputs that are written over an input, and of the inputs."""

    @property
    def values(self) -> Mapping[Buffer, ValueSlot]:
        """The slots of inputs that may be passed by value."""

    @property
    def prints(self) -> bool:
        """Whether launches print."""

    @property
    def loops(self) -> bool:
        """Whether a launch may run for any time: it has loops that the host does not drive, or
        waits for other devices.
        """

    @property
    def while_nodes(self) -> bool:
        """Whether its graphs have WHILE nodes."""

    @property
    def host_driven(self) -> bool:
        """Whether the host drives its loops and branches."""

    @property
    def per_launch(self) -> bool:
        """Whether each launch allocates scratch."""

    @property
    def code_bytes(self) -> int:
        """The size of all kernels."""

    @property
    def parameter_bytes(self) -> int:
        """The size of the kernel parameters in one graph."""

    def build(self, stream: StreamState) -> BuiltGraph:
        """A graph for a stream.

        Raises:
            OutOfMemoryError: the device has not enough memory.
        """
