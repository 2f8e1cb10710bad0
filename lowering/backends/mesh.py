"""Meshes: a Plan of each device, run on all devices of a mesh."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from itertools import count
from math import inf
from threading import Lock
from typing import TYPE_CHECKING

from lowering.backends.cuda_backend import CudaBackend
from lowering.backends.gpus import count_gpus
from lowering.backends.host import HostBackend
from lowering.mesh.executable import MeshExecutable
from lowering.mesh.meeting_of_processes import MeetingOfBuilds
from lowering.mesh.same_program import require_same_program
from lowering.mesh.together import in_threads
from lowering.plan.calls.rendezvous import BuildMeeting, PeerMeeting, place
from lowering.plan.lockstep import collective_of
from lowering.plan.nodes import launched as launched_nodes
from lowering.plan.plan import Plan
from lowering.plan.target.features import override
from lowering.plan.target.target import Target
from tracegraph.concurrency.weak_set import ConcurrentWeakSet
from tracegraph.distributed.membership import peers, process_index
from tracegraph.errors import MeshDeviceError
from tracegraph.sharding.mesh import Mesh
from tracegraph.staging.device_features import DeviceFeatures
from tracegraph.staging.interfaces import Backend, Executable

if TYPE_CHECKING:
    from lowering.mesh.gpus import MeshOfGpus

_builds = count(1)
"""How many programs of meshes this process has built: the same in all."""


class MeshBackend(Backend):
    """Compiles Plans for a mesh, of which `devices` has the backend of each device of this process.

    On the host, one backend compiles for all. On GPUs, executables are made at the same time, each
    in a thread: the libraries of their collectives meet when graphs are made. Processes compare
    Plans before.
    """

    name = "mesh"

    def __init__(self, mesh: Mesh, devices: Sequence[Backend] | None = None) -> None:
        self.mesh = mesh
        self._on_gpus = mesh.kind == "cuda"
        self._are_own = devices is None
        if devices is None:
            gpus = [CudaBackend(ordinal) for ordinal in mesh.ordinals]
            devices = gpus if self._on_gpus else [HostBackend()] * len(mesh.local_devices)
        self._devices = devices
        self._gpus: MeshOfGpus | None = None
        self._connecting = Lock()
        self._executables: ConcurrentWeakSet[MeshExecutable] = ConcurrentWeakSet()

    @property
    def target(self) -> Target:
        """That of one device. Kernels store into the memory of the others if all belong to one
        process, or each to one of its own on the same machine.
        """
        found: Target = self._devices[0].target
        if found.persistent is None or self.mesh.processes == 1 or self._are_near:
            return found
        costs = replace(found.costs, exchange=inf)
        return replace(found, costs=costs, persistent=replace(found.persistent, exchange=None))

    def compile(self, plan: Plan) -> MeshExecutable:
        """An executable of the Plan of each device of this process.

        Raises:
            MeshMismatchError: other processes have another Plan.
        """
        channel, program = peers(), plan.name
        if channel is not None:
            program = require_same_program(channel, plan, next(_builds))
        if self._on_gpus:
            executable = self._compiled_together(plan, program)
        else:
            parts = [device.compile(plan) for device in self._devices]
            executable = MeshExecutable(plan, parts, in_threads)
        self._executables.add(executable)
        return executable

    def _compiled_together(self, plan: Plan, program: str) -> MeshExecutable:
        if self._are_own:
            _require_gpus(self.mesh)
        gpus = self._connected()
        apart, channel = self._on_several_machines, peers()
        meeting: BuildMeeting = PeerMeeting(self.mesh.shape)
        if channel is not None and self.mesh.processes > 1:
            number = gpus.communicators.number
            meeting = MeetingOfBuilds(channel, self.mesh, program, number)
        calls = filter(None, map(collective_of, launched_nodes(plan.graph)))
        communicators = gpus.communicators if any(calls) else None
        first = self.mesh.local_devices[0]

        def compile_one(number: int) -> Executable:
            place.communicators, place.peers = communicators, meeting
            place.device = first + number
            try:
                # a network needs the host in each step, so that this drives the loops
                with override(conditional_nodes=False) if apart else nullcontext():
                    executable = self._devices[number].compile(plan)
                executable.upload()  # the first launch may wait for all work on the device
                return executable
            except BaseException as failure:
                meeting.fail(failure)
                raise
            finally:
                place.communicators, place.peers, place.device = None, None, 0

        parts = gpus.built(compile_one, len(self._devices))
        gpus.add(parts)
        driven = not all(part.features.conditional_nodes for part in parts)
        launched = partial(gpus.launched, program=program, driven=driven)
        return MeshExecutable(plan, parts, launched, lambda: gpus.abandoned, gpus.settle)

    @property
    def _are_near(self) -> bool:
        """Whether processes with a GPU each see those of the others: memory of one that they do not
        see is reached without NVLink, which takes 24 µs in place of 1.
        """
        mesh, seen = self.mesh, count_gpus()
        if self._on_several_machines or len(mesh.local_devices) > 1:
            return False
        return seen == 0 or seen >= mesh.processes  # without any, nothing but plans can be made

    @property
    def _on_several_machines(self) -> bool:
        channel = peers()
        return channel is not None and len(set(channel.hosts)) > 1

    def _connected(self) -> MeshOfGpus:
        """The GPUs with communicators; with new ones if the last were abandoned."""
        from lowering.mesh.gpus import MeshOfGpus

        with self._connecting:
            if self._gpus is None or self._gpus.abandoned:
                self._gpus = MeshOfGpus(self.mesh)
            return self._gpus

    def memory_stats(self) -> dict[str, int]:
        """Bytes by what holds them, on all devices together."""
        backends = list(dict.fromkeys(self._devices))
        stats = [backend.memory_stats() for backend in backends]
        return {name: sum(each[name] for each in stats) for name in stats[0]}

    def features(self) -> DeviceFeatures:
        """As `tracegraph.features`, of the first device."""
        return self._devices[0].features()

    def synchronize(self) -> None:
        """Wait for all work of the devices."""
        for device in self._devices:
            device.synchronize()

    def trim(self) -> None:
        """Give back what is kept of results that are gone."""
        for device in self._devices:
            device.trim()

    def reset(self) -> None:
        """Close all executables, and give back memory that is not in use."""
        for executable in self._executables:
            executable.close()
        self.trim()


def _require_gpus(mesh: Mesh) -> None:
    """Raise MeshDeviceError if there are fewer GPUs than the mesh has devices in this process."""
    seen, ordinals = count_gpus(), mesh.ordinals
    if seen > max(ordinals):
        return
    if mesh.processes > 1:
        wanted = ", ".join(map(str, ordinals))
        needs = f"{mesh} needs GPU {wanted} in process {process_index()}"
    else:
        needs = f"{mesh} needs {mesh.size} GPUs"
    raise MeshDeviceError(
        f"{needs}, and this process sees {seen}",
        'Mesh(..., device="host") runs the same function with a thread for each device',
    )
