"""Fallback: another way in which a Plan does something, since the device rules out the first."""

from __future__ import annotations

from tracegraph.generated.dataclass import dataclass
from tracegraph.user_source import Source, lines_of


@dataclass(frozen=True, slots=True)
class Fallback:
    """What is done instead, why, and the user's lines that it concerns.

    >>> print(Fallback("the host drives while_loop", "no conditional nodes here"))
    the host drives while_loop: no conditional nodes here
    """

    what: str
    why: str
    sources: tuple[Source, ...] = ()

    def __str__(self) -> str:
        lines = lines_of(self.sources)
        return f"{self.what}{f' at {lines}' if lines else ''}: {self.why}"
