"""Builds: the executables of one jitted function, by what each was built for, and their counts."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple, TypedDict, TypeVar

from tracegraph.errors import ClosedError, OutOfMemoryError
from tracegraph.modes import Modes
from tracegraph.staging import gc_pause
from tracegraph.staging.calls.call_tracing import trace_call
from tracegraph.staging.calls.clock import clock
from tracegraph.staging.calls.last_call import LastCall, LastRun, operands_of
from tracegraph.staging.calls.signature import CallKey, Signature
from tracegraph.staging.compiled_programs import Programs, compiled_program
from tracegraph.staging.compiler import compiler
from tracegraph.staging.executable_cache import COUNTS, CachedExecutable
from tracegraph.staging.memory_budget import keep_within_budget
from tracegraph.staging.retraces import Change, Retraces
from tracegraph.staging.scratch import Scratch
from tracegraph.staging.stages import Compiled, Lowered, Traced
from tracegraph.staging.stored_lowering import stored_lowering
from tracegraph.user_source import Kind, kinds

R = TypeVar("R")


class BuildKey(NamedTuple):
    """What an executable is built for."""

    call: CallKey
    device: str
    modes: Modes


class Stats(TypedDict):
    """Counts of one jitted function.

    `traces` and `builds`: how often it was traced, and compiled. A graph that is made for another
    stream does not count as a build. `launches`: runs, on all streams. `updates`: moved addresses
    that were patched into a graph. `bytes_copied`: bytes of arguments that could not be read in
    place, those that launches copy themselves included. `bytes_held`: constants of all its plans,
    and the scratch that is kept for one stream.
    `retraces`: for each build after the first, of the last 1,000, what had changed since the build
    before. `dropped`: builds that were dropped because there were more than `max_builds`; calls
    with their types are traced again, which counts in `traces` and `builds`.
    `evictions`: how often an executable was closed because memory was short. Building it again
    counts in `builds`.
    """

    traces: int
    builds: int
    launches: int
    updates: int
    bytes_copied: int
    bytes_held: int
    retraces: tuple[str, ...]
    evictions: int
    dropped: int


MOST_BUILDS = 4096
"""Builds that a function keeps, unless it is jitted with another limit: some 20 kB each."""


class Builds:
    """What was traced and built of one function; several threads may use it.

    At most `limit` builds are kept: the least recently used are dropped. `drops` are those that
    were dropped; the owner of this object forgets them as well.
    """

    def __init__(
        self,
        fun: Callable[..., Any],
        signature: Signature,
        scratch: Scratch,
        limit: int | None,
    ) -> None:
        self._fun, self._signature, self._scratch = fun, signature, scratch
        self._limit = limit
        self.drops: deque[CachedExecutable] = deque()
        self.executables: dict[BuildKey, CachedExecutable] = {}
        self._traces = self._builds = self._evictions = self._dropped = 0
        self._past = dict.fromkeys(COUNTS, 0)  # counts of executables that a reset has closed
        self._retraces = Retraces(warn=not _is_own(fun))
        self._last: BuildKey | None = None  # that of the last build, for what changes next
        # Reentrant: tracing may call this function again, inlined, from inside itself.
        self._lock = threading.RLock()

    def trace(self, key: CallKey, device: str) -> Traced:
        """Trace for a call, on a device."""
        with self._lock:
            traced = trace_call(self._fun, self._signature, key, device, self._scratch)
            self._traces += 1
            return traced

    def use(self, key: BuildKey, use: Callable[[CachedExecutable, Compiled], R]) -> R:
        """What `use` returns for the executable of a key; again, if it was closed meanwhile."""
        while True:
            cached, compiled = self._present(key)
            try:
                return use(cached, compiled)
            except ClosedError:
                if not cached.lost(compiled):
                    raise
            except OutOfMemoryError as error:
                self._blame(error)
                raise

    def _present(self, key: BuildKey) -> tuple[CachedExecutable, Compiled]:
        """The executable for a key, built first if there is none."""
        while True:
            present = self.executables.get(key)
            cached = present or self._build(key)
            there = cached.compiled
            compiled = there or self._rebuild(cached, key)
            if compiled is not None:  # else a reset has removed it meanwhile
                cached.used = cached.found = clock()
                if present is None or there is None:
                    cached.made = (cached.used, "traced" if present is None else "built")
                return cached, compiled

    def _build(self, key: BuildKey) -> CachedExecutable:
        with self._lock:
            cached = self.executables.get(key)
            if cached is None:  # else another thread has built it meanwhile
                compiler().open_early(key.device)
                lowered = self._stored(key) or self.trace(key.call, key.device).lower()
                cached = CachedExecutable(self._compile(lowered))
                last, self._last = self._last, key
                self.executables[key] = cached
                keep_within_budget(cached)
                self._keep_within_limit(cached)
                if last is not None:
                    changes = self._changes(last, key)
                    cached.because = ", ".join(change.text for change in changes)
                    self._retraces.note(self._signature.function, changes)
            return cached

    def _stored(self, key: BuildKey) -> Lowered | None:
        """What a file has for a call in place of a plan."""
        call, device = key.call, key.device
        return stored_lowering(self._fun, self._signature, call, device, self._scratch)

    def _keep_within_limit(self, built: CachedExecutable) -> None:
        """Drop the least recently used builds beyond the limit, but none that a call uses."""
        excess = 0 if self._limit is None else len(self.executables) - self._limit
        if excess <= 0:
            return
        by_use = sorted(self.executables.items(), key=lambda item: item[1].used)
        for key, cached in by_use:
            if excess and cached is not built and cached.close_idle():
                del self.executables[key]
                self.drops.append(cached)
                self._leave(cached)
                self._dropped += 1
                excess -= 1

    def _rebuild(self, cached: CachedExecutable, key: BuildKey) -> Compiled | None:
        """Build an evicted executable again; None if a reset has removed it meanwhile."""
        with self._lock:
            if self.executables.get(key) is not cached:
                return None
            compiled = cached.compiled
            if compiled is None:
                compiled = cached.compiled = self._compile(cached.lowered)
                cached.used = clock()
                keep_within_budget(cached)
            return compiled

    def _compile(self, lowered: Lowered) -> Compiled:
        try:
            with gc_pause.paused():
                compiled = lowered.compile()
        except OutOfMemoryError as error:
            self._blame(error)
            raise
        self._builds += 1
        return compiled

    def _blame(self, error: OutOfMemoryError) -> None:
        error.function = error.function or self._signature.function

    def _changes(self, last: BuildKey, key: BuildKey) -> list[Change]:
        """What differs from the last build."""
        if last.call != key.call:
            return self._signature.changes(last.call, key.call)
        if last.device != key.device:
            text = f"device: {last.device} -> {key.device}"
            return [Change("the device of the arguments", "device", text)]
        changes = zip(Modes._fields, last.modes, key.modes, strict=True)
        return [
            Change(f"the mode {name}", "mode", f"{name}: {old} -> {new}")
            for name, old, new in changes
            if old != new
        ]

    @contextmanager
    def forgotten(self) -> Iterator[None]:
        """Drop all executables before the block, and close them after it.

        Raises:
            Exception: what closing one of them raises, after the rest is done.
        """
        with self._lock:
            executables = list(self.executables.values())
            self.executables.clear()
            self._last = None
            yield
            with ExitStack() as each:
                for cached in executables:
                    each.callback(self._leave, cached)

    def _leave(self, cached: CachedExecutable) -> None:
        try:
            cached.close()
        finally:
            for name, count in cached.stats().items():
                self._past[name] += count
            self._evictions += cached.evictions

    def programs(self) -> Programs:
        """What was compiled, with its use so far."""
        with self._lock:
            entries = tuple(self.executables.items())
        signature = self._signature
        return Programs(
            compiled_program(signature, key.call, key.device, key.modes, cached)
            for key, cached in entries
        )

    def timings(self) -> Mapping[str, float]:
        """Those of the last call; see `Jitted.timings`."""
        last = self._last_used()
        compiled = None if last is None else last[1].compiled
        return {} if compiled is None else compiled.timings()

    def last_call(self) -> LastCall | None:
        """What the last call did; see `Jitted.last_call`."""
        last = self._last_used()
        if last is None:
            return None
        (call, device, _), cached = last
        used, compiled, signature = cached.used, cached.compiled, self._signature
        run = LastRun() if compiled is None else compiled.executable.last_run(used)
        plan = cached.lowered.plan if compiled is None else compiled.plan
        types = [str(type_) for type_ in signature.types(call)]
        when, made = cached.made
        is_new = when == used
        return LastCall(
            function=signature.function,
            device=device,
            stream=run.stream,
            traced=is_new and made == "traced",
            built=is_new,
            because=cached.because if is_new and made == "traced" else "",
            recognised=cached.found != used,
            captured=run.captured,
            operands=operands_of(signature.paths(call.structure), types, run.handling),
            updates=run.updates,
            executables=run.executables,
            fallbacks=tuple(map(str, getattr(plan, "fallbacks", ()))),
        )

    def _last_used(self) -> tuple[BuildKey, CachedExecutable] | None:
        with self._lock:
            found = self.executables.items()
            return max(found, key=lambda item: item[1].used, default=None)

    def stats(self) -> Stats:
        """The counts so far."""
        with self._lock:
            executables = tuple(self.executables.values())
            counts = [self._past, *(cached.stats() for cached in executables)]
            launches, updates, bytes_copied = (sum(c[name] for c in counts) for name in COUNTS)
            return Stats(
                traces=self._traces,
                builds=self._builds,
                launches=launches,
                updates=updates,
                bytes_copied=bytes_copied,
                bytes_held=sum(
                    r.compiled.bytes_held for r in executables if r.compiled is not None
                ),
                retraces=self._retraces.texts,
                evictions=self._evictions + sum(r.evictions for r in executables),
                dropped=self._dropped,
            )


def _is_own(fun: Callable[..., Any]) -> bool:
    code = getattr(fun, "__code__", None)
    return code is not None and kinds[code.co_filename] is Kind.OWN
