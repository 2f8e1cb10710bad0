"""Recapture: a library's call whose arguments and results move, captured again where they are.

The call is captured once into the graph, at placeholders, as a chain of kernels. For the addresses
of a launch it is captured again, aside, with the same handle and the same workspace: so the library
itself computes the parameters, and the nodes of the executable are updated to these. That takes
some 80 µs of the CPU, so parameters are kept for the addresses used last.

Both captures must be the same kernels in the same order. That is checked when the graph is built,
by a capture at other addresses, less aligned and in another order, and again in each recapture.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lowering.cuda.graph.definition import Definition
from lowering.cuda.interface import CapturedKernelHandle
from lowering.cuda.libraries.library_calls import PreparedCall
from lowering.errors import NestedCaptureError
from lowering.plan.calls.library_call import LibraryCall
from lowering.plan.nests.buffer import Buffer
from lowering.plan.owners import NodeSlots
from lowering.plan.target.hardware import ALIGNMENT
from tracegraph.errors import DeviceLostError

KEPT = 16
"""Sets of addresses for which a call keeps parameters: the pool hands out few in turn."""


def placeholder_bytes(buffers: Sequence[Buffer]) -> int:
    """The memory whose addresses stand for those of buffers that only launches have."""
    return ALIGNMENT * len(buffers)


class RecapturedCall:
    """A call in the graph of `definition`, with arrays that move.

    It keeps alive what it issues. `buffers` are those that move; `known` has the addresses of all
    others, and those in memory of the graph that some of them may have. Where `buffers` have no
    such address, there are placeholders from an address on.
    """

    def __init__(
        self,
        definition: Definition,
        prepared: PreparedCall,
        call: LibraryCall,
        buffers: tuple[Buffer, ...],
        known: Mapping[Buffer, int],
        workspace: int,
        placeholders: int,
    ) -> None:
        self.buffers = buffers
        self.kernels: tuple[CapturedKernelHandle, ...] = ()
        """The nodes that hold the addresses."""
        self._definition, self._prepared, self._call = definition, prepared, call
        self._known, self._workspace, self._placeholders = known, workspace, placeholders
        self._found: dict[tuple[int, ...], Sequence[Any]] = {}  # the last one was used last

    def capture(
        self,
        graph: Any,
        dependencies: Sequence[Any],
        slots: NodeSlots,
        stored: Sequence[int],
    ) -> tuple[Any, ...]:
        """Capture it into the graph, and return its last node; `stored` are addresses of the memory
        that it uses and that does not move. The caller holds the capture lock.

        Raises:
            UnrepeatableCaptureError: captured elsewhere, it would be anything but the same kernels.
        """
        count = len(self.buffers)
        here = [self._placeholders + ALIGNMENT * i for i in range(count)]
        elsewhere = [at + self._call.alignment for at in reversed(here)]
        known = {**dict(zip(self.buffers, here, strict=True)), **self._known}
        first = self._issue([known[buffer] for buffer in self.buffers])
        held = [*stored, *(known[buffer] for buffer in self.buffers if buffer not in self._known)]
        self.kernels = self._definition.capture_kernels(graph, dependencies, first, slots, held)
        self._recaptured(elsewhere)
        return (self.kernels[-1].node,)

    def bind(self, addresses: Sequence[int]) -> None:
        """Let updates of its kernels pass parameters for these addresses of its buffers.

        Raises:
            UpdateError: the library refuses, or would have other kernels there.
            NestedCaptureError: this thread captures a call of another graph.
        """
        key = tuple(addresses)
        found = self._found.pop(key, None)
        if found is None:
            found = self._of_call(key)
            while len(self._found) >= KEPT:
                del self._found[next(iter(self._found))]
        self._found[key] = found
        for kernel, parameters in zip(self.kernels, found, strict=True):
            kernel.take(parameters)

    def _of_call(self, addresses: Sequence[int]) -> Sequence[Any]:
        driver = self._definition.driver
        try:
            with driver.capture_lock.hold():
                return self._recaptured(addresses)
        except (DeviceLostError, NestedCaptureError):
            raise
        except RuntimeError as reason:
            raise self._definition.update_error(self.kernels[0], reason) from reason

    def _recaptured(self, addresses: Sequence[int]) -> Sequence[Any]:
        return self._definition.driver.recapture(self.kernels, self._issue(addresses))

    def _issue(self, addresses: Sequence[int]) -> Callable[[], None]:
        """What issues the call with these addresses of its buffers; graphs share its handle."""
        prepared, known = self._prepared, {**self._known}
        known.update(zip(self.buffers, addresses, strict=True))
        prepared.handle.use_workspace(self._workspace, prepared.workspace_bytes)
        issue = prepared.issue(self._call, known.__getitem__)
        return lambda: issue(prepared.handle)
