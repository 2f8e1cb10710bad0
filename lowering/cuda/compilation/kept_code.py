"""Code of a Plan that was compiled before: with it, nothing is legalized, written or compiled."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from time import perf_counter

from lowering.codegen import Unit
from lowering.cuda.compilation.compile import compiler_identity, object_code
from lowering.cuda.compilation.modules import Module
from lowering.cuda.open_devices import OpenDevice
from lowering.disk_cache.pickles import keep, kept
from lowering.disk_cache.store import CodeStore
from lowering.plan.plan import Origin, Plan
from lowering.plan.target.features import Features
from tracegraph.generated.dataclass import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class KeptCode:
    """A legalized Plan, its kernels without their text, and cubins with the names in each."""

    plan: Plan
    unit: Unit
    cubins: Sequence[tuple[Sequence[str], bytes]]

    def load(self, device: OpenDevice) -> dict[str, Module]:
        """The modules by the names of their functions."""
        modules: dict[str, Module] = {}
        for names, code in self.cubins:
            loaded = device.driver.load(object_code(code))
            modules |= dict.fromkeys(names, Module(loaded, len(code)))
        return modules


@dataclass(frozen=True, slots=True, eq=False)
class CodePlace:
    """Where the code of a Plan is on disk, for a device with some features."""

    store: CodeStore
    key: bytes
    origin: Origin
    started: float

    @classmethod
    def of(cls, plan: Plan, features: Features, device: OpenDevice) -> CodePlace | None:
        """The place; None if no code of this Plan, or of this device, is kept."""
        origin, store = plan.origin, device.program_store()
        if origin is None or store is None:
            return None
        parts = (repr(features), device.driver.arch, *compiler_identity())
        key = sha256(origin.key + "\0".join(parts).encode()).digest()
        return cls(store, key, origin, perf_counter())

    def find(self) -> KeptCode | None:
        """The code that is there."""
        found: KeptCode | None = kept(self.store, self.key, self.origin)
        return found

    def put(self, plan: Plan, unit: Unit, cubins: Sequence[tuple[Sequence[str], bytes]]) -> None:
        """Keep the code, with the time since this place was asked for."""
        launched = Unit({}, unit.kernels, unit.sequences)
        seconds = perf_counter() - self.started
        keep(self.store, self.key, self.origin, KeptCode(plan, launched, cubins), seconds)
