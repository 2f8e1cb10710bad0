"""Writer of C++ statements, with the names of the expressions computed so far."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from contextlib import contextmanager

from lowering.codegen.kernel_parameters import Parameter
from lowering.plan.nests.buffer import Buffer
from tracegraph.ir.scalar import Expr


class SourceWriter:
    """Statements in nested C++ blocks.

    A name bound in a block is known until the block ends, as in C++.
    """

    def __init__(
        self,
        pointers: Mapping[Buffer, str],
        names: Mapping[Parameter, str],
        loops: Set[int],
        words: Set[int] = frozenset(),
    ) -> None:
        self.pointers = pointers
        self.names = names  # of parameters that are not buffers
        self.loops = loops  # the conditions of while nodes
        self.words = words  # the conditions whose nodes are phases of the kernel
        self._lines: list[str] = []
        self._depth = 1
        self._scopes: list[dict[Expr, str]] = [{}]
        self._fresh = 0

    @property
    def text(self) -> str:
        """The lines written so far."""
        return "".join(line + "\n" for line in self._lines)

    def line(self, text: str) -> None:
        """Write one line at the current depth."""
        self._lines.append("  " * self._depth + text)

    def variable(self, kind: str, name: str, length: int | None = None) -> None:
        """Declare a variable, or an array, that a condition sets and a later one reads.

        It begins as zeros. Without a value on every path, NVRTC 13.0 to 13.5 spill other values to
        its place while it is still needed: a loop then ended by a limit that was not its own.
        """
        self.line(f"{kind} {name}{'' if length is None else f'[{length}]'}{{}};")

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Write `head { … }` around what is written inside."""
        self.line(f"{head} {{".lstrip())
        self._depth += 1
        self._scopes.append({})
        yield
        self._scopes.pop()
        self._depth -= 1
        self.line("}")

    @contextmanager
    def unrolled(self, head: str) -> Iterator[None]:
        """Write a loop that is unrolled, so that arrays it indexes stay in registers."""
        self.line("#pragma unroll")
        with self.block(head):
            yield

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Names bound inside are forgotten at the end; the C++ variables stay."""
        self._scopes.append({})
        yield
        self._scopes.pop()

    def bind(self, expr: Expr, text: str) -> None:
        """Name an expression until the block ends."""
        self._scopes[-1][expr] = text

    def name(self, expr: Expr) -> str | None:
        """The name of an expression, or None if it is not bound in this block or around it."""
        for scope in reversed(self._scopes):
            if expr in scope:
                return scope[expr]
        return None

    def fresh(self) -> str:
        """A variable name that is unique in the kernel."""
        self._fresh += 1
        return f"v{self._fresh - 1}"
