"""The last call of a jitted function: what it did, derived when somebody asks.

Calls note next to nothing: the time of the last use, and what happens seldom, with its time. What
happened since that use belongs to the last call; where several threads call a function at once,
to their last calls together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from tracegraph.generated.dataclass import dataclass
from tracegraph.inspection.argument_paths import grouped, large_roots
from tracegraph.inspection.tabulated import Tabulated

if TYPE_CHECKING:
    from tracegraph.inspection.tables import Report

Handling = Literal["in place", "by value", "copied", "copied by the launch", "overwritten"]
"""How an argument reaches the program.

``"in place"``: it is read where it is. ``"by value"``: a number or small host array is passed as a
parameter of a kernel. ``"copied"``: to memory of the device, or to one that is contiguous; and if
it is donated, overwritten there. ``"copied by the launch"``: within the graph, as a node needs it
at a fixed address. ``"overwritten"``: it is donated, and a result is in its memory.
"""


@dataclass(frozen=True, slots=True)
class OperandReport:
    """An argument, or an element of one, of the last call."""

    path: str
    """Its Python expression, such as ``state['v'][1]``."""
    type: str
    handling: Handling
    bytes_copied: int = 0


@dataclass(frozen=True, slots=True)
class LastRun:
    """What an executable says of its last run.

    `handling` has for each input how it was passed, and the bytes copied for that. `stream` is the
    handle of a stream, None for the device's own or where there is none. `updates` counts the nodes
    that were given other addresses or values, and `executables` what there is to choose from.
    `captured` says that it became a part of a graph that other code captures.
    """

    handling: tuple[tuple[Handling, int], ...] = ()
    stream: int | None = None
    updates: int = 0
    executables: int = 1
    captured: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LastCall(Tabulated):
    """What the last call of a function did; made by `Jitted.last_call`. It keeps no memory alive.

    >>> import tracegraph
    >>> double = tracegraph.jit(lambda x: 2 * x, device="host")
    >>> call = double(4), double(5)
    >>> double.last_call().traced, double.last_call().recognised
    (False, True)
    """

    function: str
    """The function, with file and line."""
    device: str
    stream: int | None
    """The handle of the stream; None for the device's own, and on the host."""
    traced: bool
    """Whether it was traced for this call."""
    built: bool
    """Whether the program was compiled for this call; if it was not traced, it had been evicted."""
    because: str
    """What had changed since the build before, if it was traced and is not the first."""
    recognised: bool
    """Whether it was recognised as a call like an earlier one, without a key being made."""
    captured: bool
    """Whether it became a part of a graph that other code captures, and nothing ran."""
    operands: tuple[OperandReport, ...]
    """The arrays and numbers among the arguments, in order."""
    updates: int
    """Nodes that were given other addresses or values before the launch."""
    executables: int
    """Executables of the graph for that stream: calls with addresses that come back choose one."""
    fallbacks: tuple[str, ...]
    """What runs otherwise than planned, and why."""

    @property
    def bytes_copied(self) -> int:
        """Bytes of arguments that could not be read in place."""
        return sum(operand.bytes_copied for operand in self.operands)

    def __repr__(self) -> str:
        name = self.function.partition(" ")[0]
        return f"<last call of {name}: {self._how}, {self.bytes_copied:,} B copied>"

    @property
    def _how(self) -> str:
        if self.traced:
            return "traced and built"
        if self.built:
            return "built again, as it had been evicted"
        return "recognised" if self.recognised else "found by its types"

    def report(self) -> Report:
        """What it did, and a row for each argument; those alike of a large one share theirs."""
        from tracegraph.inspection.tables import Report, ReportSection, TextTable

        own = "" if self.device == "host" else ", the device's own stream"
        where = own if self.stream is None else f", stream {self.stream:#x}"
        because = f": {self.because}" if self.because else ""
        lines = [f"last call of {self.function} on {self.device}{where}", f"{self._how}{because}"]
        if self.captured:
            lines.append("captured: it became a child of a graph of other code, and nothing ran")
        elif self.device != "host":
            nodes = "1 node" if self.updates == 1 else f"{self.updates} nodes"
            several = f", of one of {self.executables} executables" if self.executables > 1 else ""
            lines.append(f"updated {nodes}{several}")
        lines += [f"fallback: {fallback}" for fallback in self.fallbacks]
        paths = [operand.path for operand in self.operands]
        large = {k for members in large_roots(paths).values() for k in members}
        keys = [(k in large or k, o.type, o.handling) for k, o in enumerate(self.operands)]
        rows = []
        for group in grouped(paths, keys):
            first, count = self.operands[group.members[0]], len(group.members)
            type_ = first.type if count == 1 else f"{count} of {first.type}"
            copied = sum([self.operands[k].bytes_copied for k in group.members])
            rows.append((group.text, type_, first.handling, f"{copied:,}" if copied else "-"))
        table = TextTable(("argument", "type", "how", "bytes copied"), rows)
        return Report.of([ReportSection("\n".join(lines), table)])


def operands_of(
    paths: list[str], types: list[str], handling: tuple[tuple[Handling, int], ...]
) -> tuple[OperandReport, ...]:
    """The operands of a call; none where the executable says nothing."""
    if not handling:
        return ()
    return tuple(
        OperandReport(path, type_, how, copied)
        for path, type_, (how, copied) in zip(paths, types, handling, strict=True)
    )
