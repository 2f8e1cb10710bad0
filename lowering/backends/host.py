"""The host backend: runs plans on the CPU with NumPy."""

from __future__ import annotations

from random import Random

from lowering.host.executable import HostExecutable
from lowering.plan import Plan


class HostBackend:
    """Compiles plans for the CPU. The options, for debugging, are those of `HostExecutable`."""

    name = "host"

    def __init__(self, *, poison: bool = False, order: Random | None = None) -> None:
        self._poison = poison
        self._order = order

    def compile(self, plan: Plan) -> HostExecutable:
        """An executable of the plan."""
        return HostExecutable(plan, poison=self._poison, order=self._order)
