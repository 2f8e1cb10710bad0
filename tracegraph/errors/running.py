"""Programs that ran and had to end, and what they run in: executables and memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tracegraph.errors.wording import function_text, user_line, value_text

__all__ = [
    "CapturingStreamError", "CleanUpWarning", "ClosedError", "DeviceLostError", "ExportError",
    "FallbackWarning", "FrozenRandomWarning", "IndexRangeError", "InstantiationError",
    "NoGraphError", "NodeError", "NonFiniteError", "NotInstantiatedError", "OutOfMemoryError",
    "RepeatedIndexError", "RetraceWarning", "StepLimitError", "StoppedError", "TimeLimitError",
    "UpdateError", "index_range_text", "iteration_limit_text", "repeated_index_text",
    "step_limit_text",
]  # fmt: skip


class StepLimitError(RuntimeError):
    """A loop had not ended after the `max_steps` that it was given."""


class NonFiniteError(FloatingPointError):
    """A result has a NaN or an infinity, in a block of `debug.nans` or `debug.checks`."""


class IndexRangeError(IndexError):
    """A traced index was out of range, in a program of a `tracegraph.check_indices` block."""


def index_range_text(index: object, axis: int, extent: int, unchecked: str) -> str:
    """What an `IndexRangeError` says. Without the check, the access is `unchecked`."""
    return (
        f"an index, {value_text(index)}, is out of bounds for axis {axis} with size {extent}; "
        f"without tracegraph.check_indices, such {unchecked}{user_line()}"
    )


class RepeatedIndexError(IndexError):
    """Indices that were promised, by ``unique=True``, to name no element twice did so.

    Traced indices are only checked in programs of a `tracegraph.check_indices` block.
    """


def repeated_index_text() -> str:
    """What a `RepeatedIndexError` says."""
    return (
        "indices given with unique=True name an element of the array twice; leave unique out, so "
        f"that such elements are updated twice{user_line()}"
    )


def step_limit_text(condition: Callable[..., Any], body: Callable[..., Any], limit: int) -> str:
    """What a `StepLimitError` says."""
    return (
        f"while_loop: {function_text(condition)} still held after max_steps={limit} runs of "
        f"{function_text(body)}; raise max_steps, or take the carry as it is then with "
        f"on_max_steps='stop'{user_line()}"
    )


def iteration_limit_text(body: Callable[..., Any], limit: int) -> str:
    """What a `StepLimitError` of a fori_loop says."""
    return (
        f"fori_loop: the bounds ask for more than max_steps={limit} runs of "
        f"{function_text(body)}; raise max_steps{user_line()}"
    )


class FallbackWarning(RuntimeWarning):
    """A function runs another way than planned: the device, or the user, rules the first out."""

    def __init__(self, function: str, device: str, fallbacks: Sequence[str]) -> None:
        self.fallbacks = tuple(fallbacks)
        super().__init__(
            f"{function} runs on {device} with fallbacks: {'; '.join(fallbacks)}. "
            f"tracegraph.features({device!r}) says what the device lacks"
        )


class FrozenRandomWarning(RuntimeWarning):
    """NumPy's global generator has drawn numbers while a function was traced."""

    def __init__(self, function: str, draw: str | None, twin: str | None) -> None:
        self.draw = draw
        what = "NumPy's global generator" if draw is None else draw
        super().__init__(
            f"{what} drew numbers while {function} was traced: they are constants, the same in "
            f"every call; use {twin or 'tracegraph.random'}, with a key among the arguments, or "
            "draw before the call and pass the numbers"
        )


_SHOWN = 200
"""Characters of a change that a warning quotes."""

_STEADY = {
    "shape": "pad it to one of few shapes, or call with pieces of one shape",
    "dtype": "convert it to one dtype before the call",
    "shape and dtype": "pad it to one of few shapes of one dtype",
    "static value": "pass it as a number or array that is traced, if no shape or Python control "
    "flow depends on it, or from a small set of values",
    "structure": "pass the same containers, with the same lengths and keys",
    "device": "keep the arrays on one device",
    "mode": "enter the mode around all of the calls",
}


class CleanUpWarning(RuntimeWarning):
    """Something of a device could not be freed, and stays until the process ends.

    Attributes:
        operation: the driver's function.
        name: the driver's name of the error, such as ``"CUDA_ERROR_INVALID_HANDLE"``.
    """

    def __init__(self, what: str, operation: str, name: str, message: str) -> None:
        super().__init__(
            f"{what} could not be freed: {operation} failed with {name}: {message}; it stays until "
            "the process ends"
        )
        self.operation, self.name = operation, name


class RetraceWarning(RuntimeWarning):
    """A function is traced and compiled again and again, as its arguments keep changing.

    Attributes:
        changing: for each argument that does, its expression, what changes, and in how many builds.
    """

    def __init__(
        self, function: str, builds: int, changing: Sequence[tuple[str, str, int]], last: str
    ) -> None:
        self.changing = tuple(changing)
        last = last if len(last) <= _SHOWN else f"{last[:_SHOWN]}…"
        found = [
            f"{_what_changes(where, aspect)} has changed in {count} of them: {_STEADY[aspect]}"
            for where, aspect, count in changing
        ]
        super().__init__(
            f"{function} was traced and compiled {builds} times, which may take longer than what "
            f"it computes; {'; '.join(found)}. The last change: {last}. jitted.stats()['retraces'] "
            "lists them, and jit(max_builds=) limits how many programs are kept"
        )


def _what_changes(where: str, aspect: str) -> str:
    if aspect in ("device", "mode"):
        return where
    if aspect == "static value":
        return f"the value of static argument {where}"
    return f"the {aspect} of argument {where}"


class TimeLimitError(RuntimeError):
    """A program was stopped because the time of a `time_limit` was up."""

    def __init__(self, seconds: float) -> None:
        super().__init__(
            f"the program had not ended when its time_limit of {seconds:g} s was up, and was "
            "stopped; its results are lost. Allow more time, or bound its loops with max_steps"
        )


class StoppedError(RuntimeError):
    """An array was used whose program had been stopped before it was computed."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"this array was being computed when {reason} stopped its program: it has no elements; "
            "call the function again, and bound its loops with max_steps if they "
            "may not end"
        )


class DeviceLostError(RuntimeError):
    """A device failed while it ran what had been launched; the process can use it no more.

    Attributes:
        reason: the driver's name of the failure, such as ``"CUDA_ERROR_ILLEGAL_ADDRESS"``.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"the device failed in a launch ({reason}): what this process has there is lost, and "
            "it can run nothing more on it; start the process anew. It may be that an array of "
            "another library was larger than its memory, or freed too early. Where other processes "
            "use the same GPU, it may be a fault of the driver with loops: let them take turns, or "
            "set TRACEGRAPH_FEATURES=no-conditional-nodes"
        )
        self.reason = reason


class ClosedError(RuntimeError):
    """An executable was called after it had been closed."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the executable of {name!r} was closed; compile it again")


class ExportError(RuntimeError):
    """A compiled function has no CUDA graph that others could launch."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"{name!r} cannot be exported as a CUDA graph: {why}")


class InstantiationError(RuntimeError):
    """The driver refused to make an executable of a graph."""

    def __init__(self, name: str, node: str, reason: str) -> None:
        super().__init__(
            f"the graph of {name!r} could not be instantiated{f' at {node}' if node else ''}: "
            f"{reason}"
        )


class NodeError(ValueError):
    """A node of an exported graph was asked for what CUDA does not offer for it."""

    def __init__(self, node: str, what: str, reason: str) -> None:
        super().__init__(f"{node} {what}: {reason}")


class NoGraphError(RuntimeError):
    """The CUDA graph behind calls was asked for, and there is none."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"{name!r} has no CUDA graph: {reason}; compiled.plan is what it runs")


class NotInstantiatedError(RuntimeError):
    """An exported graph was to be updated, and has no executable."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"the exported graph of {name!r} has no open executable that instantiate() has made; "
            "call that first, or pass the executable that other code has made"
        )


class CapturingStreamError(RuntimeError):
    """A call cannot become a part of the graph that other code captures; that goes on without it.

    Attributes:
        reason: what stands in the way.
    """

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(
            f"{name!r} was called while other code captures, and cannot become a part of that "
            f"graph: {reason}"
        )
        self.reason = reason


class UpdateError(RuntimeError):
    """The driver refused to give a node of an executable a new address or value.

    The executable stays as it was: the call raises without a launch, and the next one writes again
    all that differs.
    """

    def __init__(self, name: str, node: str, reason: str) -> None:
        super().__init__(
            f"the graph of {name!r} could not be updated at {node}: {reason}; pass arrays of this "
            "device, or compile the function again"
        )


class OutOfMemoryError(MemoryError):
    """A device had not enough memory, though all that was not in use had been given back.

    Attributes:
        device: its name.
        nbytes: what was asked for, as far as is known.
        what: a name for it, such as ``"12 bytes"`` or ``"the graph of solve"``.
        free, total: bytes of the device; other programs also hold some.
        held: bytes that this process holds, by purpose.
        functions: those whose executables hold the most, with the bytes of each.
        function: the one that was called or compiled, if any.
    """

    def __init__(
        self,
        device: str,
        nbytes: int,
        free: int,
        total: int,
        held: Mapping[str, int],
        functions: Sequence[tuple[str, int]],
        what: str = "",
    ) -> None:
        super().__init__(device, nbytes, free, total, held, functions, what)
        self.what = what or f"{nbytes:,} bytes"
        self.device, self.nbytes, self.free, self.total = device, nbytes, free, total
        self.held, self.functions = held, functions
        self.function: str | None = None

    def __str__(self) -> str:
        asked = "" if self.function is None else f" that {self.function} asked for"
        held = ", ".join(f"{purpose} {nbytes:,}" for purpose, nbytes in self.held.items())
        by = ", ".join(f"{name} {nbytes:,}" for name, nbytes in self.functions) or "none"
        return (
            f"{self.device} has not enough memory for {self.what}{asked}: "
            f"{self.free:,} of {self.total:,} are free\n  held here, in bytes: {held}\n"
            f"  by executables, scratch that they share included: {by}\n"
            "Let go of Arrays that are no longer needed, donate arguments, or work in smaller parts"
        )
