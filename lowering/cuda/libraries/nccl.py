"""Collectives by NCCL: communicators of the devices of a mesh, and calls that are captured.

Each device is captured in a thread of its own. Captured calls are kernels alone: with its support
for mixing graphs and other calls, NCCL would record events, which no loop may hold. It is switched
off, so that no two graphs with collectives of one mesh may run at the same time.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from lowering.plan.calls.collectives import (
    AllGather,
    AllReduce,
    AllToAll,
    CollectiveCall,
    CollectiveKind,
    Permute,
    ReduceScatter,
)
from lowering.plan.calls.library_call import StridedArray
from lowering.plan.calls.rendezvous import Lines, place
from lowering.plan.nests.buffer import Buffer
from tracegraph.distributed.membership import peers
from tracegraph.distributed.timeouts import SETTING, peer_timeout
from tracegraph.errors import MeshDeviceError, PeerFailedError, PeerLostError
from tracegraph.sharding.mesh import Mesh

if TYPE_CHECKING:
    from tracegraph.distributed.channel import Channel

_SUCCESS, _IN_PROGRESS = 0, 7
"""ncclResult_t."""

_MIXING = "NCCL_GRAPH_MIXING_SUPPORT"

Group = tuple[int, ...]
"""Devices that exchange arrays, by their numbers in the mesh."""

_BYTES = 1
"""ncclUint8: what is only moved."""

_DTYPES = {
    "int8": 0, "uint8": 1, "int32": 2, "uint32": 3, "int64": 4, "uint64": 5, "float16": 6,
    "float32": 7, "float64": 8, "bfloat16": 9,
}  # fmt: skip
"""ncclDataType_t, by names of dtypes."""

_PARTS = {"complex64": "float32", "complex128": "float64"}
"""Complex numbers are summed as pairs."""

_FOLDS = {"sum": 0, "max": 2, "min": 3}
"""ncclRedOp_t."""


class Communicators:
    """The communicators of a mesh: one of each line of devices, and of each plane, that is asked
    for, for each device in it that this process has.
    """

    def __init__(self, mesh: Mesh) -> None:
        os.environ.setdefault(_MIXING, "0")
        self.nccl = _library()
        self._lines, self._mesh = Lines(mesh.shape), mesh
        self._lock, self._naming = threading.Lock(), threading.Lock()
        self._made: dict[tuple[Group, int], Any] = {}
        self._names: dict[Group, bytes] = {}
        self.meeting: dict[int, tuple[str, float]] = {}
        """What devices do with others inside of the library at the moment, and since when."""
        self.channel = peers() if mesh.processes > 1 else None
        self.number = None if self.channel is None else self.channel.new_launch()
        """By which other processes learn that the devices of one are abandoned."""

    def of(self, device: int, axes: Sequence[str]) -> tuple[Any, int]:
        """The communicator of a device along axes, and the number of the device in it."""
        group = self._lines.group(device, axes)
        rank = group.index(device)
        with self._lock:
            if (group, device) in self._made:
                return self._made[group, device], rank
            if self.channel is None:
                made = self.nccl.comm_init_all(len(group), list(group))
                self._made |= {(group, own): each for own, each in zip(group, made, strict=True)}
                return self._made[group, device], rank
        # The others of the group come at the same time, in other threads or processes.
        with self.meets(device, f"while NCCL connects {_devices(group)}"):
            with self._naming:
                name = self._name(self.channel, group, axes)
            joined = self.nccl.comm_init_rank_scalable(len(group), rank, 1, bytearray(name), 0)
        with self._lock:
            self._made[group, device] = joined
        return joined, rank

    def _name(self, channel: Channel, group: Group, axes: Sequence[str]) -> bytes:
        """The name by which the library finds the devices of a group, some of other processes.

        All processes come here at once, as they build the same Plan: the first thread of each. The
        process of a group's first device makes the name.
        """
        if group not in self._names:
            mesh = self._mesh
            firsts = sorted({self._lines.group(each, axes)[0] for each in range(mesh.size)})
            own = {
                first: bytes(self.nccl.get_unique_id()).hex()
                for first in firsts
                if first in mesh.local_devices
            }
            what = f"communicators over {', '.join(axes)}"
            data, meeting = json.dumps(own).encode(), f"{what} of {mesh.device}"
            for given in channel.exchange(data, meeting, what, self.number):
                for first, name in json.loads(given).items():
                    self._names[self._lines.group(int(first), axes)] = bytes.fromhex(name)
        return self._names[group]

    @contextmanager
    def meets(self, device: int, what: str) -> Iterator[None]:
        """Note that a device waits for others inside of the library."""
        self.meeting[device] = what, time.monotonic()
        try:
            yield
        finally:
            del self.meeting[device]

    def longest_meeting(self) -> float:
        """How many seconds the device has waited that has waited longest; 0 if none does."""
        now = time.monotonic()
        return max([now - since for _, since in list(self.meeting.values())], default=0.0)

    def check_meetings(self) -> None:
        """Look whether others come in time.

        Raises:
            PeerLostError: a device has waited for longer than the `peer_timeout`.
        """
        for device, (what, since) in list(self.meeting.items()):
            if time.monotonic() - since > peer_timeout():
                raise PeerLostError(
                    f"device {device} has waited {peer_timeout():g} s for others {what}, {SETTING}"
                )

    def watch(self, number: int | None) -> None:
        """Look whether all devices are there for the launch of a number.

        Raises:
            PeerLostError: one is lost, as far as the library knows.
        """
        self.check(number)
        for (group, _), communicator in list(self._made.items()):
            state = int(self.nccl.comm_get_async_error(communicator))
            if state not in (_SUCCESS, _IN_PROGRESS):
                raise PeerLostError(f"NCCL reports error {state} of the devices {group}")

    def check(self, number: int | None) -> None:
        """Look whether all processes are there for the launch of a number.

        Raises:
            PeerLostError: one is lost, has ended, or has abandoned its device.
        """
        if self.channel is not None:
            try:
                for each in (self.number, number):
                    self.channel.check(each, "a program of its mesh")
            except PeerFailedError as failure:
                raise PeerLostError(str(failure)) from None

    def leave(self) -> None:
        """Tell other processes that the devices of this one are abandoned."""
        if self.channel is not None and self.number is not None:
            self.channel.fail(self.number, self._mesh.local_devices[0])

    def abort(self) -> list[threading.Thread]:
        """End all that waits in them. Each is aborted in a thread, which ends when no graph refers
        to it any more.
        """
        with self._lock:
            made, self._made = self._made, {}
        threads = [
            threading.Thread(target=self._aborted, args=(communicator,), daemon=True)
            for communicator in made.values()
        ]
        for thread in threads:
            thread.start()
        return threads

    def _aborted(self, communicator: Any) -> None:
        with suppress(Exception):  # it is broken already
            self.nccl.comm_abort(communicator)


def _devices(group: Group) -> str:
    return f"devices {', '.join(map(str, group))}"


def _library() -> Any:
    """NCCL by nccl4py, which is imported where a mesh of GPUs is first used.

    Raises:
        MeshDeviceError: one of them is missing.
    """
    try:
        from nccl.bindings import nccl

        nccl.get_version()  # the library itself is loaded by the first call
    except (ImportError, RuntimeError) as error:
        raise MeshDeviceError(
            "a mesh of GPUs needs NCCL and its Python bindings, nccl4py: "
            f"pip install 'tracegraph[mesh]' ({type(error).__name__}: {error})"
        ) from error
    return nccl


class PreparedCollective:
    """A collective of one device, on its capture stream."""

    workspace_bytes = 0

    def __init__(self, stream: int, call: CollectiveCall) -> None:
        shared: Communicators | None = place.communicators
        if shared is None:
            raise MeshDeviceError(f"{call.name} runs on the devices of a mesh, not on one alone")
        self._stream, self._nccl = stream, shared.nccl
        self._communicator, self._rank = shared.of(place.device, call.axes)
        self._first_meeting = partial(shared.meets, place.device, f"in the first {call.name}")

    def use_workspace(self, pointer: int, nbytes: int) -> None:
        """NCCL has its own."""

    def meeting(self) -> AbstractContextManager[None]:
        """Within it the call is made for the first time, for which the library connects devices."""
        return self._first_meeting()

    def at_once(self, steps: Sequence[Callable[[PreparedCollective], None]]) -> None:
        """Issue several as one kernel."""
        self._nccl.group_start()
        try:
            for step in steps:
                step(self)
        finally:
            self._nccl.group_end()

    def all_reduce(self, source: int, target: int, count: int, dtype: int, fold: int) -> None:
        """The same for all."""
        arguments = (source, target, count, dtype, fold, self._communicator, self._stream)
        self._nccl.all_reduce(*arguments)

    def reduce_scatter(self, source: int, target: int, count: int, dtype: int) -> None:
        """A block of the sum."""
        arguments = (source, target, count, dtype, 0, self._communicator, self._stream)
        self._nccl.reduce_scatter(*arguments)

    def all_gather(self, source: int, target: int, nbytes: int) -> None:
        """The bytes of all."""
        arguments = (source, target, nbytes, _BYTES, self._communicator, self._stream)
        self._nccl.all_gather(*arguments)

    def all_to_all(self, source: int, target: int, nbytes: int, count: int) -> None:
        """Block i to device i, and from it."""
        places = [(source + i * nbytes, target + i * nbytes, i, i) for i in range(count)]
        self._exchange(places, nbytes)

    def permute(
        self, source: int, target: int, nbytes: int, perm: Sequence[tuple[int, int]]
    ) -> None:
        """To the target of this device, and from its source."""
        (to,) = (there for here, there in perm if here == self._rank)
        (from_,) = (here for here, there in perm if there == self._rank)
        self._exchange([(source, target, to, from_)], nbytes)

    def _exchange(self, pieces: Sequence[tuple[int, int, int, int]], nbytes: int) -> None:
        """Send and receive at once: addresses that are sent and received, to and from devices."""
        self._nccl.group_start()
        try:
            for source, target, to, from_ in pieces:
                others = self._communicator, self._stream
                self._nccl.send(source, nbytes, _BYTES, to, *others)
                self._nccl.recv(target, nbytes, _BYTES, from_, *others)
        finally:
            self._nccl.group_end()


class NcclLibrary:
    """NCCL on the capture stream of a device."""

    prepared = PreparedCollective

    def __init__(self, stream: int) -> None:
        self._stream = stream

    def prepare(self, call: CollectiveCall) -> PreparedCollective:
        """The collective of the device for which this thread makes a graph."""
        return PreparedCollective(self._stream, call)

    def use_workspace(self, pointer: int, nbytes: int) -> None:
        """NCCL has its own."""


Issue = Callable[[PreparedCollective], None]


def collective(call: CollectiveCall, address: Callable[[Buffer], int]) -> Issue:
    """What issues collectives: one, or a group."""
    members = list(zip(call.kinds, call.sources, call.targets, strict=True))
    steps = [_issue(kind, call.count, x, y.address(address), address) for kind, x, y in members]
    return steps[0] if len(steps) == 1 else lambda nccl: nccl.at_once(steps)


def _issue(
    kind: CollectiveKind,
    count: int,
    array: StridedArray,
    target: int,
    address: Callable[[Buffer], int],
) -> Issue:
    source, size, nbytes = array.address(address), prod(array.shape), array.nbytes
    match kind:
        case AllReduce(fold=fold):
            dtype, parts = _number_type(kind, array)
            return lambda nccl: nccl.all_reduce(source, target, parts * size, dtype, _FOLDS[fold])
        case ReduceScatter():
            dtype, parts = _number_type(kind, array)
            own = parts * size // count
            return lambda nccl: nccl.reduce_scatter(source, target, own, dtype)
        case AllGather():
            return lambda nccl: nccl.all_gather(source, target, nbytes)
        case AllToAll():
            block = nbytes // count
            return lambda nccl: nccl.all_to_all(source, target, block, count)
        case Permute(perm=perm):
            return lambda nccl: nccl.permute(source, target, nbytes, perm)


def _number_type(kind: CollectiveKind, array: StridedArray) -> tuple[int, int]:
    """The dtype in which NCCL computes, and how many numbers are an element.

    Raises:
        TypeError: it does not compute with this dtype.
    """
    dtype: np.dtype[Any] = array.buffer.type.dtype
    name = _PARTS.get(dtype.name, dtype.name)
    if name not in _DTYPES:
        raise TypeError(f"NCCL has no {kind.verb} of {dtype.name}; cast it to int32 first")
    return _DTYPES[name], 2 if dtype.name in _PARTS else 1
