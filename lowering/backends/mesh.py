"""Meshes: a Plan of each device, run on all devices of a mesh."""

from __future__ import annotations

from lowering.backends.host import TARGET, HostBackend
from lowering.host.mesh_executable import MeshExecutable
from lowering.plan.plan import Plan
from tracegraph.concurrency.weak_set import ConcurrentWeakSet
from tracegraph.sharding.mesh import Mesh
from tracegraph.staging.device_features import DeviceFeatures
from tracegraph.staging.interfaces import Backend


class MeshBackend(Backend):
    """Compiles Plans for a mesh of the host, of which each device is a thread."""

    name = "mesh"
    target = TARGET

    def __init__(self, mesh: Mesh, devices: HostBackend | None = None) -> None:
        self.mesh = mesh
        self._devices = devices or HostBackend()
        self._executables: ConcurrentWeakSet[MeshExecutable] = ConcurrentWeakSet()

    def compile(self, plan: Plan) -> MeshExecutable:
        """An executable of the Plan of each device."""
        parts = [self._devices.compile(plan) for _ in range(self.mesh.size)]
        executable = MeshExecutable(plan, parts)
        self._executables.add(executable)
        return executable

    def memory_stats(self) -> dict[str, int]:
        """Bytes by what holds them, on all devices together."""
        return self._devices.memory_stats()

    def features(self) -> DeviceFeatures:
        """As `tracegraph.features`: there are no graphs."""
        return self._devices.features()

    def synchronize(self) -> None:
        """Calls are over when they return."""

    def trim(self) -> None:
        """Give back what is kept of results that are gone."""
        self._devices.trim()

    def reset(self) -> None:
        """Close all executables, and give back memory that is not in use."""
        for executable in self._executables:
            executable.close()
        self.trim()
