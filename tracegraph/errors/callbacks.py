"""Functions of the host that programs call: what they are given, return, and cannot do."""

from __future__ import annotations

from tracegraph.errors.wording import TypeLike, user_line
from tracegraph.user_source import Source

__all__ = [
    "CallbackBatchError", "CallbackDeadlockError", "CallbackResultError", "CallbackStructureError",
    "CallbackTimeoutError", "CallbackTypesError", "HostCallError", "HostCallInBodyError",
]  # fmt: skip


class CallbackTypesError(TypeError):
    """`pure_callback` got something other than result types, or an unknown way of calling for
    lanes.
    """

    def __init__(self, problem: str) -> None:
        super().__init__(f"pure_callback: {problem}{user_line()}")


class CallbackResultError(TypeError):
    """What a function returned to `pure_callback` does not have the types that were declared."""

    def __init__(self, name: str, path: str, found: str, wanted: TypeLike) -> None:
        super().__init__(
            f"pure_callback: {path} of {name} must be of type {wanted}, but {found}; convert it in "
            "the function, or declare its type in the second argument of pure_callback"
        )


class CallbackStructureError(TypeError):
    """What a function returned to `pure_callback` has another structure than was declared."""

    def __init__(self, name: str, got: str, wanted: str) -> None:
        super().__init__(
            f"pure_callback: the result of {name} must have the structure {wanted}, that of the "
            f"second argument of pure_callback, but has {got}"
        )


class CallbackBatchError(TypeError):
    """`vmap` meets a `pure_callback` that does not say how it is called for many lanes."""

    def __init__(self, name: str, source: Source | None) -> None:
        at = "" if source is None else f"\n  at {source}, in {source.function}"
        super().__init__(
            f"vmap: pure_callback({name}, ...) does not say how it is called for many lanes; give "
            'it vmap_method="sequential" (a call for each lane), "expand_dims" (one call; lanes '
            "are axis 0 of arguments and results, of extent 1 in arguments that lanes share) or "
            f'"broadcast_all" (one call; lanes are axis 0 of all){at}'
        )


class CallbackTimeoutError(TimeoutError):
    """A device waited too long for the answer of a function, and was stopped."""

    def __init__(self, name: str, seconds: float, source: Source | None) -> None:
        at = "" if source is None else f"\n  at {source}, in {source.function}"
        super().__init__(
            f"pure_callback: {name} did not answer within {seconds:g} s, while the device waited, "
            "and the program was stopped; it must not wait for the program that calls it. If it "
            f"needs longer, give pure_callback a larger time_limit, or None for no limit{at}"
        )


class CallbackDeadlockError(RuntimeError):
    """A function that the device waits for would wait for the device."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(
            f"pure_callback: the device waits for the answer of {name}, and what is called there "
            f"would wait for the device: {why}; compute it on the host, "
            'tracegraph.jit(f, device="host"), or before the program that calls back'
        )


class HostCallError(TypeError):
    """`host_call` got no C function, or data that it cannot pass on."""

    def __init__(self, problem: str) -> None:
        super().__init__(f"host_call: {problem}{user_line()}")


class HostCallInBodyError(ValueError):
    """`host_call` is in a branch or a loop, whose graphs hold no host nodes."""

    def __init__(self, name: str, construct: str, source: Source | None) -> None:
        at = "" if source is None else f"\n  at {source}, in {source.function}"
        super().__init__(
            f"host_call: {name} is called inside {construct}, and graphs of branches and loops "
            "hold no host nodes; call it outside, or call a Python function by "
            f"tracegraph.debug.callback, which branches and loops may hold{at}"
        )
