"""Jitted: trace once, compile once per argument types, then only launch."""

from __future__ import annotations

import functools
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, TypedDict, overload

from tracegraph import ops as _ops  # noqa: F401 - registers the op records
from tracegraph import tree
from tracegraph.devices import canonical_device
from tracegraph.errors import ClosedError, OutOfMemoryError
from tracegraph.staging.compiler import compiler, default_device
from tracegraph.staging.executable_cache import COUNTS, Resident, ticks
from tracegraph.staging.fast_call import MISS, MOST_NESTED, Entry, make_entry, no_entry
from tracegraph.staging.memory_budget import keep_within_budget
from tracegraph.staging.scratch import Scratch
from tracegraph.staging.signature import Call, CallKey, DirectKey, Signature, direct_call
from tracegraph.staging.stages import Compiled, Lowered, Traced, flat_results
from tracegraph.tracing.trace import innermost, outermost, trace_program
from tracegraph.weak_set import ConcurrentWeakSet


class Stats(TypedDict):
    """Counts of one jitted function.

    `traces` and `builds`: how often it was traced, and compiled; the graph that another stream gets
    at its first call is no build. `launches`: runs, on all streams. `updates`: moved addresses that
    were patched into a graph. `bytes_copied`: from arguments that could not be read in place.
    `bytes_held`: constants of all its plans, and their scratch, as one stream needs it, where it is
    kept. `retraces`: for each build after the first, what had changed since the build before.
    `evictions`: how often an executable was closed because memory was short; each is built again,
    which `builds` counts.
    """

    traces: int
    builds: int
    launches: int
    updates: int
    bytes_copied: int
    bytes_held: int
    retraces: tuple[str, ...]
    evictions: int


class Jitted:
    """A function that is compiled on its first call with each combination of argument types.

    Made by `tracegraph.jit`. Threads may call it concurrently.
    """

    def __init__(
        self, fun: Callable[..., Any], signature: Signature, device: str | None, scratch: Scratch
    ) -> None:
        functools.update_wrapper(self, fun)
        self._fun = fun
        self._signature = signature
        self._device = None if device is None else canonical_device(device)
        self._scratch = scratch
        self._residents: dict[tuple[CallKey, str], Resident] = {}
        # The same for calls that `direct_call` knows, and a few more; `_entry` is the last call's.
        self._entries: dict[DirectKey, Entry] = {}
        self._nested: deque[Entry] = deque(maxlen=MOST_NESTED)
        self._entry: Entry = no_entry
        self._traces = self._builds = self._evictions = 0
        self._past = dict.fromkeys(COUNTS, 0)  # counts of what a reset has made it forget
        self._retraces: list[str] = []
        # Reentrant: tracing may call this function again, inlined, from inside itself.
        self._lock = threading.RLock()
        _all.add(self)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the function; inside another one that is being traced, as a part of that."""
        if outermost and innermost.trace is not None:
            return self._fun(*args, **kwargs)
        result = self._entry(args, kwargs)
        if result is not MISS:
            return result
        return self._run(args, kwargs)

    def launch(self, *args: Any, **kwargs: Any) -> Any:
        """Run the compiled function now, even while another function is being traced."""
        return self._run(args, kwargs)

    def _run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        direct = direct_call(args) if not kwargs else None
        key = None if direct is None else direct[0]
        del direct  # its leaves would count as further owners of what is donated
        for entry in self._known(key):
            result = entry(args, kwargs)
            if result is not MISS:
                self._entry = entry
                return result
        call = self._signature.bind(args, kwargs)
        device = self._device or _device_of(call)
        while True:
            resident = self._residents.get((call.key, device)) or self._build(call.key, device)
            compiled = resident.compiled or self._rebuild(resident, call.key, device)
            if compiled is None:
                continue
            resident.used = next(ticks)
            if not call.key.static and compiled.accepts(call):
                function = self._signature.function
                made = make_entry(args, kwargs, call.passed, resident, compiled, function)
                self._enter(made, key)
            try:
                return compiled.run(call)
            except ClosedError:
                if not resident.lost(compiled):
                    raise
            except OutOfMemoryError as error:
                self._blame(error)
                raise

    def _known(self, key: DirectKey | None) -> Sequence[Entry]:
        """The entries that a call may be of, which has such a direct key, or none."""
        if key is None:
            return tuple(self._nested)
        entry = self._entries.get(key)
        return () if entry is None else (entry,)

    def _enter(self, entry: Entry | None, key: DirectKey | None) -> None:
        """Recognise calls from now on, which have such a direct key, or none."""
        if entry is None:
            return
        if key is None:
            self._nested.append(entry)
        else:
            self._entries[key] = entry
        self._entry = entry

    def _build(self, key: CallKey, device: str) -> Resident:
        with self._lock:
            resident = self._residents.get((key, device))
            if resident is None:  # else another thread has built it meanwhile
                lowered = self._trace(key, device).lower()
                resident = Resident(self._compile(lowered))
                if self._residents:
                    self._retraces.append(self._changes(key, device))
                self._residents[key, device] = resident
                keep_within_budget(resident)
            return resident

    def _rebuild(self, resident: Resident, key: CallKey, device: str) -> Compiled | None:
        """Build again what was evicted; None if it was forgotten meanwhile."""
        with self._lock:
            if self._residents.get((key, device)) is not resident:
                return None
            compiled = resident.compiled
            if compiled is None:
                compiled = resident.compiled = self._compile(resident.lowered)
                resident.used = next(ticks)
                keep_within_budget(resident)
            return compiled

    def _compile(self, lowered: Lowered) -> Compiled:
        try:
            compiled = lowered.compile()
        except OutOfMemoryError as error:
            self._blame(error)
            raise
        self._builds += 1
        return compiled

    def _blame(self, error: OutOfMemoryError) -> None:
        error.function = error.function or self._signature.function

    def forget(self) -> None:
        """Drop all programs and executables; the next call traces and builds anew.

        Raises:
            Exception: what closing one of them raises, after the rest is done.
        """
        with self._lock:
            residents = list(self._residents.values())
            self._residents.clear()
            self._entries.clear()
            self._nested.clear()
            self._entry = no_entry
            with ExitStack() as each:
                for resident in residents:
                    each.callback(self._leave, resident)

    def _leave(self, resident: Resident) -> None:
        try:
            resident.close()
        finally:
            for name, count in resident.stats().items():
                self._past[name] += count
            self._evictions += resident.evictions

    def _changes(self, key: CallKey, device: str) -> str:
        """What differs from the types that were compiled last."""
        last_key, last_device = next(reversed(self._residents))
        if last_key == key:
            return f"device: {last_device} -> {device}"
        return self._signature.differences(last_key, key)

    def _trace(self, key: CallKey, device: str) -> Traced:
        with self._lock:
            traced = trace_call(self._fun, self._signature, key, device, self._scratch)
            self._traces += 1
            return traced

    def trace(self, *args: Any, **kwargs: Any) -> Traced:
        """Trace for the types of these arguments, which may be `ArrayType`s instead of arrays.

        >>> import tracegraph
        >>> f32 = tracegraph.ArrayType("float32", (3,))
        >>> jit(lambda x: x * 2).trace(f32).program.out_types[0] == f32
        True
        """
        call = self._signature.bind(args, kwargs, abstract=True)
        return self._trace(call.key, self._device or _device_of(call))

    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """Trace and plan for the types of these arguments, which may be `ArrayType`s."""
        return self.trace(*args, **kwargs).lower()

    def stats(self) -> Stats:
        """Counts of traces, builds, launches, updates and bytes, and the reasons of retraces."""
        with self._lock:
            residents = tuple(self._residents.values())
            counts = [self._past, *(resident.stats() for resident in residents)]
            launches, updates, bytes_copied = (sum(c[name] for c in counts) for name in COUNTS)
            return Stats(
                traces=self._traces,
                builds=self._builds,
                launches=launches,
                updates=updates,
                bytes_copied=bytes_copied,
                bytes_held=sum(r.compiled.bytes_held for r in residents if r.compiled is not None),
                retraces=tuple(self._retraces),
                evictions=self._evictions + sum(r.evictions for r in residents),
            )

    @overload
    def __get__(self, instance: None, owner: type) -> Jitted: ...
    @overload
    def __get__(self, instance: object, owner: type | None = None) -> BoundJitted: ...
    def __get__(self, instance: object | None, owner: type | None = None) -> Jitted | BoundJitted:
        return self if instance is None else BoundJitted(self, instance)

    def __repr__(self) -> str:
        return f"<jitted {self._signature.function}>"


_all: ConcurrentWeakSet[Jitted] = ConcurrentWeakSet()


def forget_builds() -> None:
    """Make every jitted function forget what it has traced and built; raises as `forget`."""
    with ExitStack() as each:
        for jitted in _all:
            each.callback(jitted.forget)


@dataclass(frozen=True, slots=True, eq=False)
class BoundJitted:
    """A jitted method bound to its instance, which is the first argument."""

    function: Jitted
    instance: Any

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the method."""
        return self.function(self.instance, *args, **kwargs)

    def trace(self, *args: Any, **kwargs: Any) -> Traced:
        """The same as `Jitted.trace`."""
        return self.function.trace(self.instance, *args, **kwargs)

    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """The same as `Jitted.lower`."""
        return self.function.lower(self.instance, *args, **kwargs)

    def stats(self) -> Stats:
        """The counts of the method, over all instances."""
        return self.function.stats()


def trace_call(
    fun: Callable[..., Any],
    signature: Signature,
    key: CallKey,
    device: str,
    scratch: Scratch = "kept",
) -> Traced:
    """Trace `fun` for the types of a call."""
    out_structure: list[tree.Structure] = []

    def flat(*leaves: Any) -> list[Any]:
        args, kwargs = signature.rebuild(key, leaves)
        results, structure = flat_results(signature.function, fun(*args, **kwargs))
        out_structure.append(structure)
        return results

    def path(number: int) -> str:
        return signature.paths(key.structure)[number]

    name = getattr(fun, "__name__", type(fun).__name__)
    program = trace_program(flat, signature.types(key), name, path)
    return Traced(program, key, out_structure[0], signature, device, scratch, compiler)


def _device_of(call: Call) -> str:
    """Where the first device Array of a call is, or else the default."""
    for leaf in call.leaves:
        device: str | None = getattr(leaf, "device", None)
        if isinstance(device, str) and device != "cpu":
            return device
    return default_device()
