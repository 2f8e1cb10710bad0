"""Jitted functions: trace and compile once for each combination of argument types, then launch."""

from __future__ import annotations

import functools
import sys
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from tracegraph.arrays.known_arrays import replaced
from tracegraph.concurrency.weak_set import ConcurrentWeakSet
from tracegraph.devices import canonical_device
from tracegraph.errors.names_elsewhere import OF_STAGES, answer, missing_of_jitted
from tracegraph.errors.tracebacks import entry_point, hide_frames
from tracegraph.generated.dataclass import dataclass
from tracegraph.modes import PLAIN, current_modes, process
from tracegraph.staging.builds import BuildKey, Builds, Stats
from tracegraph.staging.calls.fast_call import (
    MISS,
    MOST_NESTED,
    FastCall,
    make_fast_call,
    no_fast_call,
)
from tracegraph.staging.calls.finite_results import checked
from tracegraph.staging.calls.last_call import LastCall
from tracegraph.staging.calls.ranges import ranged
from tracegraph.staging.calls.signature import DirectKey, FlatCall, Signature, direct_call
from tracegraph.staging.compiled_programs import Programs
from tracegraph.staging.compiler import default_device
from tracegraph.staging.executable_cache import CachedExecutable
from tracegraph.staging.scratch import Scratch
from tracegraph.staging.stages import Compiled, Lowered, Traced
from tracegraph.tracing.trace import innermost, outermost

P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class Jitted(Generic[P, R_co]):
    """A function that is compiled on its first call with each combination of argument types.

    Made by `tracegraph.jit`. Threads may call it concurrently. It is copied and pickled as
    functions are: a copy is the function itself, and a pickle holds its import path. To type
    checkers, it has the parameters and the result of the function.
    """

    def __init__(
        self,
        fun: Callable[P, R_co],
        signature: Signature,
        device: str | None,
        scratch: Scratch,
        max_builds: int | None,
    ) -> None:
        functools.update_wrapper(self, fun)
        self._fun = fun
        self._signature = signature
        self._device = None if device is None else canonical_device(device)
        self._scratch, self._max_builds = scratch, max_builds
        self._builds = Builds(fun, signature, scratch, max_builds)
        # The fast-call cache: by direct key, and a few without one. The last one comes first. Calls
        # in blocks of other modes have none.
        self._fast_calls: dict[DirectKey, FastCall] = {}
        self._nested_calls: deque[FastCall] = deque(maxlen=MOST_NESTED)
        self._made: dict[CachedExecutable, dict[DirectKey, None]] = {}  # fast calls of each
        self.recent: FastCall = no_fast_call
        """That of the last call; it returns MISS for a call of other types."""
        _all.add(self)

    @property
    def function(self) -> Callable[P, R_co]:
        """The function as it was given to `jit`."""
        return self._fun

    @property
    def signature(self) -> Signature:
        """The parameters, and which of them are static or donated."""
        return self._signature

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Run the function. While another function is traced, it becomes part of that one."""
        try:
            if outermost and innermost.trace is not None:
                return self._fun(*args, **kwargs)
            if not process.entered or (current_modes() == PLAIN and process.is_plain):
                result: R_co = self.recent(args, kwargs)
                if result is not MISS:
                    return result
            if process.is_plain:
                return self._run(args, kwargs)
            return self._observed(args, kwargs)
        except BaseException as error:
            hide_frames(error)
            raise

    def _observed(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> R_co:
        """A call with a range for profilers, and a check of its results, if these are asked for."""

        def run() -> R_co:
            with ranged(self._signature.function):
                return self._run(args, kwargs)

        def bind() -> FlatCall:
            return self._signature.bind(args, kwargs)

        def trace(call: FlatCall) -> Traced:
            return self._builds.trace(call.key, self._device or _device_of(call))

        return checked(run, self._signature, bind, trace) if process.checks else run()

    @entry_point
    def launch(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Run the compiled function now, even while another function is being traced."""
        return self._run(args, kwargs)

    def _run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> R_co:
        modes = current_modes()
        plain = modes == PLAIN
        direct = direct_call(args) if plain and not kwargs else None
        key = None if direct is None else direct[0]
        del direct  # its leaves would count as further owners of what is donated
        for fast_call in self._candidates(key) if plain else ():
            result: R_co = fast_call(args, kwargs)
            if result is not MISS:
                self.recent = fast_call
                return result
        if key is None and plain and not self._signature.static:
            known = replaced(args, kwargs)  # arrays of PyTorch and others
            if known is not None:
                result = self.recent(*known)
                return self._run(*known) if result is MISS else result
        call = self._signature.bind(args, kwargs)
        device = self._device or _device_of(call)

        def run(cached: CachedExecutable, compiled: Compiled) -> R_co:
            if self._builds.drops:
                self._forget_dropped()
            if plain and not call.key.static and compiled.accepts(call):
                function = self._signature.function
                made = make_fast_call(args, kwargs, call.passed, cached, compiled, function)
                self._remember(cached, made, key)
            found: R_co = compiled.run(call)
            return found

        return self._builds.use(BuildKey(call.key, device, modes), run)

    def through(
        self, args: tuple[Any, ...], run: Callable[[CachedExecutable, Compiled, list[Any]], R]
    ) -> R:
        """What `run` returns for the program of a call, and its leaves as an executable takes them.

        The program is built first if there is none; `run` is called again if it was closed
        meanwhile. Nothing is noted for profilers, and results are not checked.
        """
        call = self._signature.bind(args, {})
        build = BuildKey(call.key, self._device or _device_of(call), current_modes())

        def found(cached: CachedExecutable, compiled: Compiled) -> R:
            if self._builds.drops:
                self._forget_dropped()
            compiled.require_ranges(call.leaves)
            return run(cached, compiled, call.leaves)

        return self._builds.use(build, found)

    def _candidates(self, key: DirectKey | None) -> Sequence[FastCall]:
        """The fast calls that may fit a call with this direct key, or with none."""
        if key is None:
            return tuple(self._nested_calls)
        fast_call = self._fast_calls.get(key)
        return () if fast_call is None else (fast_call,)

    def _remember(
        self, cached: CachedExecutable, fast_call: FastCall | None, key: DirectKey | None
    ) -> None:
        """Keep the fast call for calls with this direct key, or with none."""
        if fast_call is None:
            return
        if key is None:
            self._nested_calls.append(fast_call)
        else:
            self._fast_calls[key] = fast_call
            self._made.setdefault(cached, {})[key] = None
        self.recent = fast_call

    def _forget_dropped(self) -> None:
        """Forget the fast calls of builds that were dropped, which keep their plans alive."""
        drops = self._builds.drops
        while drops:
            for key in self._made.pop(drops.popleft(), ()):
                self._fast_calls.pop(key, None)
            self._nested_calls.clear()  # few, and not known whose
            self.recent = no_fast_call

    def forget(self) -> None:
        """Drop all programs and executables; the next call traces and builds again.

        Raises:
            Exception: what closing one of them raises, after the rest is done.
        """
        with self._builds.forgotten():
            self._fast_calls.clear()
            self._nested_calls.clear()
            self._made.clear()
            self._builds.drops.clear()
            self.recent = no_fast_call

    @entry_point
    def trace(self, *args: Any, **kwargs: Any) -> Traced:
        """Trace for the types of these arguments, which may be `ArrayType`s instead of arrays.

        >>> import tracegraph
        >>> f32 = tracegraph.ArrayType("float32", (3,))
        >>> tracegraph.jit(lambda x: x * 2).trace(f32).program.out_types[0] == f32
        True
        """
        call = self._signature.bind(args, kwargs, abstract=True)
        return self._builds.trace(call.key, self._device or _device_of(call))

    @entry_point
    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """Trace and plan for the types of these arguments, which may be `ArrayType`s."""
        return self.trace(*args, **kwargs).lower()

    @entry_point
    def warm(self, *args: Any, **kwargs: Any) -> None:
        """Compile for the types of these arguments, which may be `ArrayType`s, without running.

        What a first call does, and no later one: trace, lower, compile, allocate scratch, and
        upload the graph to the device, for the current stream. Arguments are not read; donated ones
        stay. What is compiled already is uploaded only. Code for the CPU is the best at once, where
        a first call may begin with code that is made quickly.

        >>> import tracegraph
        >>> double = tracegraph.jit(lambda x: 2 * x, device="host")
        >>> double.warm(tracegraph.ArrayType("float64", (3,)))
        >>> double.stats()["builds"], double.stats()["launches"]
        (1, 0)

        Raises:
            UnsupportedArgumentError: an argument is not an array, number or type.
            OutOfMemoryError: the device has not enough memory.
            CapturingStreamError: other code captures the current stream.
        """
        call = self._signature.bind(args, kwargs, abstract=True)
        build = BuildKey(call.key, self._device or _device_of(call), current_modes())

        def upload(cached: CachedExecutable, compiled: Compiled) -> None:
            self._forget_dropped()
            compiled.executable.upload()

        self._builds.use(build, upload)

    @entry_point
    def profile(self, *args: P.args, **kwargs: P.kwargs) -> Any:
        """The time of each node in calls with these arguments; see `Compiled.profile`.

        It compiles what is not compiled for their types.

        >>> import numpy as np
        >>> import tracegraph
        >>> cumulated = tracegraph.jit(lambda x: np.sort(np.cumsum(x)), device="host")
        >>> [node.runs for node in cumulated.profile(np.ones(9)).nodes]
        [1.0, 1.0]

        Raises:
            UnsupportedArgumentError: an argument is not an array or a number.
            OutOfMemoryError: the device has not enough memory to run the plan a second time.
        """
        call = self._signature.bind(args, kwargs)
        build = BuildKey(call.key, self._device or _device_of(call), current_modes())

        def measured(cached: CachedExecutable, compiled: Compiled) -> Any:
            self._forget_dropped()
            return compiled.profile(*args, **kwargs)

        return self._builds.use(build, measured)

    def programs(self) -> Programs:
        """What was compiled for each combination of types, with its use so far.

        It prints as a table, and is data: a tuple of `CompiledProgram`. Holding it keeps no memory.

        >>> import tracegraph
        >>> double = tracegraph.jit(lambda x: 2 * x, device="host")
        >>> int(double(4)), float(double(0.5))
        (8, 1.0)
        >>> [(program.arguments, program.launches) for program in double.programs()]
        [('~i64[]', 1), ('~f64[]', 1)]
        """
        return self._builds.programs()

    def timings(self) -> Mapping[str, float]:
        """Milliseconds of each section of `debug.timed` in the last call, which is waited for.

        As `Compiled.timings` of the program that was called last; empty before the first call.
        """
        return self._builds.timings()

    def last_call(self) -> LastCall | None:
        """What the last call did: what was traced, built, copied and updated; it prints as a table.

        None before the first call. Compiling by `warm` counts as a call. It is found out when this
        is called, from the state that the last call has left: calls take no longer for it. If
        threads call the function at once, their last calls are not told apart.

        >>> import numpy as np
        >>> import tracegraph
        >>> scale = tracegraph.jit(lambda x, by: x * by, device="host")
        >>> scales = scale(np.ones(3), 2), scale(np.ones(4), 2)
        >>> print(repr(scale.last_call()), scale.last_call().because)
        <last call of <lambda>: traced and built, 0 B copied> x: f64[3] -> f64[4]
        >>> [(each.path, each.type, each.handling) for each in scale.last_call().operands]
        [('x', 'f64[4]', 'in place'), ('by', '~i64[]', 'by value')]
        """
        return self._builds.last_call()

    def stats(self) -> Stats:
        """Counts of traces, builds, launches, updates and bytes, and the reasons of retraces."""
        return self._builds.stats()

    def on_device(self, device: str) -> Jitted[P, R_co]:
        """The same function with the same options for another device; its programs are its own.

        Raises:
            TypeError: `device` is not a string.

        >>> import tracegraph
        >>> tracegraph.jit(lambda x: x + 1).on_device("host")(1)
        Array(2, dtype=int64)
        """
        device, limit = canonical_device(device), self._max_builds
        return Jitted(self._fun, self._signature, device, self._scratch, limit)

    @overload
    def __get__(self, instance: None, owner: type) -> Jitted[P, R_co]: ...
    @overload
    def __get__(
        self: Jitted[Concatenate[Any, Q], R], instance: object, owner: type | None = None
    ) -> BoundJitted[Q, R]: ...
    def __get__(self, instance: object | None, owner: type | None = None) -> Any:
        return self if instance is None else BoundJitted(self, instance)

    def __copy__(self) -> Jitted[P, R_co]:
        return self

    def __deepcopy__(self, memo: object) -> Jitted[P, R_co]:
        return self

    def __reduce__(self) -> str | tuple[Any, ...]:
        """By import path, as functions are pickled. What has none of its own, such as `jit(f)`
        under another name, is made anew of its function. Programs are built again.
        """
        if _imported(self) is self:
            name: str = self.__qualname__
            return name
        options = (self._signature, self._device, self._scratch, self._max_builds)
        return Jitted, (self._fun, *options)

    def __repr__(self) -> str:
        return f"<jitted {self._signature.function}>"


def _imported(jitted: Jitted[..., Any]) -> Any:
    """What is found where the function says that it is defined."""
    found: Any = sys.modules.get(jitted.__module__)
    for name in getattr(jitted, "__qualname__", "<no name>").split("."):
        found = getattr(found, name, None)
    return found


_all: ConcurrentWeakSet[Jitted[..., Any]] = ConcurrentWeakSet()


def forget_builds() -> None:
    """Make every jitted function forget what it has traced and built; raises as `forget`."""
    with ExitStack() as each:
        for jitted in _all:
            each.callback(jitted.forget)


@dataclass(frozen=True, slots=True, eq=False)
class BoundJitted(Generic[P, R_co]):
    """A jitted method bound to its instance, which is the first argument."""

    function: Jitted[..., R_co]
    instance: Any

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Call the method."""
        try:
            return self.function(self.instance, *args, **kwargs)
        except BaseException as error:
            hide_frames(error)
            raise

    @entry_point
    def trace(self, *args: Any, **kwargs: Any) -> Traced:
        """The same as `Jitted.trace`."""
        return self.function.trace(self.instance, *args, **kwargs)

    @entry_point
    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """The same as `Jitted.lower`."""
        return self.function.lower(self.instance, *args, **kwargs)

    @entry_point
    def warm(self, *args: Any, **kwargs: Any) -> None:
        """The same as `Jitted.warm`."""
        self.function.warm(self.instance, *args, **kwargs)

    @entry_point
    def profile(self, *args: Any, **kwargs: Any) -> Any:
        """The same as `Jitted.profile`."""
        return self.function.profile(self.instance, *args, **kwargs)

    def programs(self) -> Programs:
        """The programs of the method, over all instances."""
        return self.function.programs()

    def timings(self) -> Mapping[str, float]:
        """The same as `Jitted.timings`, over all instances."""
        return self.function.timings()

    def last_call(self) -> LastCall | None:
        """The same as `Jitted.last_call`, over all instances."""
        return self.function.last_call()

    def stats(self) -> Stats:
        """The counts of the method, over all instances."""
        return self.function.stats()


answer(Jitted, OF_STAGES, missing_of_jitted)


def _device_of(call: FlatCall) -> str:
    """Where the first device Array of a call is, or else the default."""
    for leaf in call.leaves:
        device: str | None = getattr(leaf, "device", None)
        if isinstance(device, str) and device != "cpu":
            return device
    return default_device()
