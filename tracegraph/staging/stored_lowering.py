"""Stored lowerings: programs with targets, which a device runs without planning and compiling."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from typing import Any

from tracegraph.errors import FallbackWarning
from tracegraph.ir.argument_ranges import ArgumentRange
from tracegraph.ir.program import Program
from tracegraph.ir.types import ArrayType
from tracegraph.staging.calls.ranges import ranged
from tracegraph.staging.calls.signature import CallKey, Signature
from tracegraph.staging.compiler import compiler
from tracegraph.staging.program_function import ProgramFunction, StoredProgram
from tracegraph.staging.scratch import Scratch
from tracegraph.staging.stages import Compiled, Lowered, Traced


class StoredTraced(Traced):
    """A program of a file, which is read once it is asked for."""

    __slots__ = ("_stored",)
    _stored: StoredProgram

    def __init__(
        self,
        stored: StoredProgram,
        key: CallKey,
        signature: Signature,
        device: str,
        scratch: Scratch,
    ) -> None:
        assign = object.__setattr__
        assign(self, "_stored", stored)
        for name, value in (
            ("key", key),
            ("out_structure", stored.structure),
            ("signature", signature),
            ("device", device),
            ("scratch", scratch),
            ("compiler", compiler),
            ("sharding", None),
        ):
            assign(self, name, value)

    @property
    def program(self) -> Program:
        """The program of the file."""
        return self._stored.program()

    @property
    def out_types(self) -> tuple[ArrayType, ...]:
        """The types of the results."""
        return self._stored.results

    @property
    def ranges(self) -> tuple[ArgumentRange, ...]:
        """As those of `Traced`."""
        return self._stored.ranges


class StoredLowered(Lowered):
    """A program that has targets in place of a plan, which is made once it is asked for."""

    __slots__ = ("_planned", "_planning", "_stored")
    _planned: Lowered | None
    _planning: threading.Lock
    _stored: StoredProgram

    def __init__(self, traced: StoredTraced, stored: StoredProgram) -> None:
        object.__setattr__(self, "traced", traced)
        object.__setattr__(self, "_stored", stored)
        object.__setattr__(self, "_planned", None)
        object.__setattr__(self, "_planning", threading.Lock())

    @property
    def planned(self) -> Lowered:
        """The program, planned for the device."""
        with self._planning:
            found = self._planned
            if found is None:
                found = self.traced.lower()
                object.__setattr__(self, "_planned", found)
            return found

    @property
    def plan(self) -> Any:
        """The plan of the program."""
        return self.planned.plan

    def compile(self) -> Compiled:
        """The graph of the target that fits the device; if none does, that of the plan.

        Warns with a `FallbackWarning` if none does.

        Raises:
            MalformedTargetError: the target is not well formed.
            OutOfMemoryError: the device has not enough memory.
        """
        function, device = self.traced.signature.function, self.traced.device

        def planned() -> Lowered:
            return self.planned

        with ranged(f"load {function}"):
            found = compiler().load_target(self._stored.targets, device, planned)
        if isinstance(found, str):
            warning = FallbackWarning(function, device, [f"its program is compiled here: {found}"])
            warnings.warn(warning, stacklevel=3)
            return self.planned.compile()
        return Compiled.of(self, found)


def stored_lowering(
    fun: Callable[..., Any], signature: Signature, key: CallKey, device: str, scratch: Scratch
) -> StoredLowered | None:
    """What a function has for a call on a GPU, if it is a file's, and has targets.

    Raises:
        ArgumentTypesError: it has programs, but none for these types.
    """
    programs: Any = fun
    if not isinstance(programs, ProgramFunction) or device.partition(":")[0] != "cuda":
        return None
    stored = programs.stored_for(signature, key)
    if stored is None:
        return None
    return StoredLowered(StoredTraced(stored, key, signature, device, scratch), stored)
