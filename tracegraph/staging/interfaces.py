"""The interface of what runs Plans: backends, executables and streams.

A third-party backend registers in the entry-point group ``tracegraph.backends``: an entry point of
the backend's name that loads to a callable, which takes the device and returns a `Backend`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from tracegraph.errors import RawMemoryError
from tracegraph.ir.program import Program
from tracegraph.ir.types import ArrayType
from tracegraph.staging.calls.donated import Donated
from tracegraph.staging.calls.last_call import LastRun
from tracegraph.staging.device_features import DeviceFeatures
from tracegraph.staging.exported import ExportedGraph
from tracegraph.staging.graph_view import GraphView
from tracegraph.staging.program_function import StoredTarget
from tracegraph.staging.scratch import Scratch

if TYPE_CHECKING:
    from pathlib import Path

    from tracegraph.inspection.tables import Report


class DeviceStream(Protocol):
    """A stream of a device, alive as long as this object is."""

    def __cuda_stream__(self) -> tuple[int, int]:
        """The version of this protocol, and the handle."""

    @property
    def priority(self) -> int:
        """Its priority; lower numbers come first."""

    def synchronize(self) -> None:
        """Wait for all work in it; raises what reading a result of that does."""


class Executable(Protocol):
    """A Plan that can run."""

    @property
    def plan(self) -> Any:
        """The Plan that runs: the one compiled, after legalization for the device."""

    @property
    def closed(self) -> bool:
        """Whether it was closed."""

    def __call__(self, arguments: Sequence[Any], donated: Donated | None = None) -> Sequence[Any]:
        """Run once with flat arguments, and return fresh results in order.

        An argument is a Python number, an ndarray, a `DeviceBuffer`, or any object with
        ``__cuda_array_interface__`` or DLPack; its dtype and shape are those of the Plan's input.
        Results are ndarrays on the host, and `DeviceBuffer`s on a device.

        An output that the Plan writes over an input is in the argument's memory if `donated` owns
        that, else in a copy of the argument.
        """

    def launch(self, arguments: Sequence[Any], donated: Donated | None = None) -> Sequence[Any]:
        """Run without checks: an earlier call has accepted arguments like these.

        Each has the class, dtype, shape and device of the argument then.
        """

    def upload(self) -> None:
        """Do now what the first launch would do on the current stream, and run nothing.

        Raises:
            ClosedError: it is closed.
            CapturingStreamError: other code captures the stream, and the call cannot join.
        """

    def view(self) -> GraphView:
        """The graph that calls on the current stream launch, for `Compiled.graph`.

        Raises:
            NoGraphError: there is none.
            ClosedError: it is closed.
        """

    def export_graph(
        self, arguments: Sequence[Any], *, programmatic_edges: bool = True
    ) -> ExportedGraph:
        """A graph with these arguments for others to launch, and its flat results.

        Edges between kernels are programmatic if they may be.

        Raises:
            ExportError: there is none, or it needs the host.
        """

    @property
    def slots(self) -> Any:
        """What each node keeps alive, without keeping it alive; it prints as a table."""

    def stats(self) -> Mapping[str, int]:
        """Counts since compilation: launches, updates (of moved addresses), bytes_copied."""

    def timings(self) -> Mapping[str, float]:
        """Milliseconds of each timed section in the last run, which is waited for."""

    def last_run(self, since: float) -> LastRun:
        """What the last run did, which is all that happened since a time of `clock`."""

    def memory(self) -> Mapping[str, int]:
        """Bytes of scratch, constants and graph, as one stream needs them.

        Scratch is what a run works in, and constants what else the nodes point to; the graph's are
        code and node parameters.
        """

    @property
    def bytes_held(self) -> int:
        """Bytes of the scratch and constants that are kept between calls."""

    def pieces(self) -> Mapping[Hashable, int]:
        """The bytes of each piece of memory that it holds, by a key that sharers have in common."""

    def close(self) -> None:
        """Free what the executable holds; a later call raises ClosedError."""

    def close_idle(self) -> bool:
        """Close, unless a call is running; whether it is closed. Does not wait for calls."""


class Backend(Protocol):
    """Compiles Plans for one device. The last six methods do nothing where they are inherited."""

    @property
    def name(self) -> str:
        """The name that selects it: the part of a device before the colon."""

    @property
    def target(self) -> Any:
        """What planning needs to know of the device, a `lowering.plan.target.target.Target`."""

    def compile(self, plan: Any) -> Executable:
        """Make everything that running the Plan needs."""

    def memory_stats(self) -> Mapping[str, int]:
        """Bytes by what holds them, as `tracegraph.memory_stats` returns them."""

    def features(self) -> DeviceFeatures:
        """What `tracegraph.features` returns for the device: no CUDA graphs."""
        return DeviceFeatures(device=self.name, name=self.name)

    def owned(self, address: int, type_: ArrayType, owner: Any, stream: int | None) -> Any:
        """An ndarray or a `DeviceBuffer` of memory at an address, which keeps its owner.

        `stream` is the handle of the stream that writes it, if uses have to wait for one. Nothing
        may write to it.

        Raises:
            RawMemoryError: the device cannot access the memory.
            ValueError: the stream belongs to another device.
        """
        raise RawMemoryError(f"arrays of raw memory cannot be on {self.name!r}")

    def create_stream(self, priority: int | None = None) -> DeviceStream | None:
        """A new stream of the device; None if calls are over when they return.

        Raises:
            ValueError: the device has no such priority.
        """
        return None

    def synchronize(self) -> None:
        """Wait for all work."""

    def trim(self) -> None:
        """Wait for all work, and give back memory that is kept for later."""

    def reset(self) -> None:
        """Wait for all work, close all executables, and give back memory that is not in use."""


class Compiler(Protocol):
    """Program -> Plan -> Executable, and views of a Plan."""

    def plan_of(
        self,
        program: Program,
        device: str,
        donated: Sequence[int] = (),
        *,
        scratch: Scratch = "kept",
    ) -> Any:
        """The Plan of a program for a device; it may write outputs over the inputs `donated`.

        One that was kept on disk is not made again.
        """

    def target_of(self, plan: Any, arch: str) -> StoredTarget:
        """A Plan compiled for an architecture, such as ``"sm_90"``; no GPU is needed for it.

        Raises:
            UnsavableError: it has what no file can bring along; the message names the line.
            RuntimeError: the kernels do not compile, or there is no compiler.
        """

    def load_target(
        self, targets: Mapping[str, StoredTarget], device: str, planned: Callable[[], Any]
    ) -> Executable | str:
        """An executable of the one of these targets that fits a device, or why none does.

        What a target cannot do is done by the Plan of the program: `planned` gives a `Lowered`.

        Raises:
            MalformedTargetError: the target is not well formed.
            OutOfMemoryError: the device has not enough memory.
        """

    def target_sizes(self, target: StoredTarget) -> Mapping[str, int]:
        """What a target has: kernels, nodes, and bytes of code.

        Raises:
            MalformedTargetError: it is not well formed.
        """

    def plan_without_libraries(self, program: Program, donated: Sequence[int] = ()) -> Any:
        """The Plan of a program for a GPU, which calls no library: kernels take their place."""

    def flat_file_of(
        self, target: StoredTarget, inputs: Sequence[str], outputs: Sequence[str]
    ) -> bytes:
        """A target as the file that the C loader reads. Arguments and results have names there.

        Raises:
            UnsavableError: it has what C cannot have; the message has the line.
            MalformedTargetError: it is not well formed.
        """

    def c_loader(self) -> Path:
        """The header of the C loader."""

    def cache_contents(self) -> tuple[str | None, str, int, int]:
        """The folder of the cache on disk, or None and why there is none; bytes, and entries."""

    def clear_cache(self) -> None:
        """Delete all entries of the cache on disk."""

    def backend(self, device: str) -> Backend:
        """The backend of a device."""

    def open_early(self, device: str) -> None:
        """Begin to open a device that is soon needed, beside other work. An error is raised when
        it is used.
        """

    def synchronize(self) -> None:
        """Wait for all work of the devices in use."""

    def trim(self) -> None:
        """Wait for all work, and give back memory that is kept for later."""

    def reset(self) -> None:
        """Wait for all work, close all executables, and give back memory that is not in use."""

    def create_stream(self, device: str, priority: int | None) -> DeviceStream | None:
        """A new stream of a device; None where calls are over when they return."""

    def source(self, plan: Any, device: str) -> str:
        """CUDA C++ text of the kernels, or LLVM IR of native code on the host."""

    def memory(self, plan: Any) -> Mapping[str, int]:
        """Bytes of arguments, outputs, scratch and constants, as the Plan has them."""

    def explain(self, plan: Any, device: str, details: bool) -> Report:
        """Tables of loops and branches, and of the work of nodes; `details`: long ones whole."""

    def profile(
        self,
        plan: Any,
        device: str,
        arguments: Sequence[Any],
        executable: Executable,
        launches: int,
    ) -> Any:
        """The times of the Plan's nodes: a `lowering.plan.reports.profile.Profile`, or on a mesh a
        `lowering.plan.reports.mesh_profile.MeshProfile`.
        """

    def schedules(self, plan: Any) -> Sequence[tuple[str, str, str]]:
        """The user's line, the construct and the schedule of every loop and branch."""

    def dot(self, plan: Any) -> str:
        """The graph in Graphviz's language."""
