"""Users' own kernels and functions: declarations that do not hold, and code that does not compile.

`kernel` names one in messages: ``"lif (neurons.py:12)"``.
"""

from __future__ import annotations

from collections.abc import Sequence

from tracegraph.errors.wording import user_line
from tracegraph.user_source import Source

__all__ = [
    "CapturedCallError", "CustomKernelError", "KernelCompileError", "KernelLaunchError",
    "KernelResultError",
]  # fmt: skip


class CustomKernelError(TypeError):
    """A kernel or function of the user's is declared, or called, in a way that cannot work."""

    def __init__(self, kernel: str, problem: str, *details: str) -> None:
        super().__init__("\n  ".join((f"{kernel}: {problem}", *details)) + user_line())


class KernelResultError(TypeError):
    """A reference returned something else than what is declared.

    `rows` has each result that differs, as it is declared and as it was returned.
    """

    def __init__(self, kernel: str, rows: Sequence[tuple[str, str, str]]) -> None:
        lines = [f"{what}: declared {declared}, returned {got}" for what, declared, got in rows]
        super().__init__(
            "\n  ".join(
                (
                    f"the reference of {kernel} does not return what is declared",
                    *lines,
                    "change the reference or out=: compiled code writes what is declared",
                )
            )
        )


class KernelCompileError(RuntimeError):
    """CUDA C++ of the user's does not compile; the message has the compiler's log."""

    def __init__(
        self, kernel: str, arch: str, log: str, expected: str, source: Source | None
    ) -> None:
        place = "" if source is None else f"\n  called at {source}, in {source.function}"
        super().__init__(
            f"kernel {kernel} does not compile for {arch}\n{log.strip()}\n"
            f"the call needs it declared as\n  {expected}{place}"
        )


class KernelLaunchError(RuntimeError):
    """A kernel of the user's cannot be launched as it is declared."""

    def __init__(self, kernel: str, problem: str, lines: str) -> None:
        super().__init__(f"kernel {kernel} {problem}\n  called at {lines or 'an unknown line'}")


class CapturedCallError(RuntimeError):
    """A function of the user's cannot be captured into a graph, or a graph not be embedded."""

    def __init__(self, call: str, error: Exception, lines: str) -> None:
        super().__init__(
            f"{call} cannot be put into a graph: {type(error).__name__}: {error}"
            f"\n  called at {lines or 'an unknown line'}"
        )
