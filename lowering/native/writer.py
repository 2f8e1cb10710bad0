"""The text of an LLVM function while it is written: registers, blocks, loops and metadata.

Only syntax that LLVM 20 can also read. Variables that change are memory of the function's frame,
which LLVM turns into registers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tracegraph.generated.dataclass import dataclass

INSTRUCTIONS = 8
"""Instructions of one unit of work: about a nanosecond."""

LONG = 1 << 22
"""Work of a loop that may take many milliseconds."""

LONG_BLOCK = 1 << 16
"""Steps between two polls of a loop that has more than `LONG` steps."""

POLLED_STEP = 1 << 12
"""The least work of a step that a poll may follow: the cost of the poll is small beside it."""

UNKNOWN_STEPS = 1 << 8
"""Steps of a loop whose ends are known at run time only."""


@dataclass(frozen=True, slots=True)
class FunctionText:
    """The instructions of a function: those of its entry block, and the others."""

    frame: list[str]
    lines: list[str]


class Registers(dict[Any, str]):
    """Registers of a function by what they hold, made when they are first asked for."""

    def __init__(self, make: Callable[[Any], str]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, key: Any) -> str:
        self[key] = made = self._make(key)
        return made


class Writer:
    """Instructions of one function, in blocks; `functions` are the texts of others."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.frame: list[str] = []
        """The instructions of the entry block, before all others: memory and addresses."""
        self.declarations: dict[str, None] = {}
        self.metadata: list[str] = []
        self.globals: list[str] = []
        self.functions: list[str] = []
        self._shared: dict[tuple[str, int], str] = {}
        self.work = 0
        """The work of the loops that were written so far, but for those that poll."""
        self.poll: Callable[[int], None] | None = None
        """Writes a poll behind so much work, where loops are long."""
        self._registers = self._labels = 0
        self._in_loops = 0
        self._access_group: str | None = None

    def register(self) -> str:
        """A new register."""
        self._registers += 1
        return f"%r{self._registers}"

    def line(self, text: str) -> None:
        """Add an instruction without a result."""
        self.lines.append(f"  {text}")

    def assign(self, text: str) -> str:
        """Add an instruction; its register."""
        self._registers += 1
        register = f"%r{self._registers}"
        self.lines.append(f"  {register} = {text}")
        return register

    def declare(self, text: str) -> None:
        """Declare a function that is defined elsewhere."""
        self.declarations[text] = None

    def call(self, result: str, name: str, *arguments: str) -> str:
        """Call a declared function; arguments have types. The register of the result."""
        types = ", ".join(each.rpartition(" ")[0] for each in arguments)
        self.declare(f"declare {result} @{name}({types})")
        return self.assign(f"call {result} @{name}({', '.join(arguments)})")

    @contextmanager
    def function(self) -> Iterator[FunctionText]:
        """Within, instructions are those of another function."""
        outer = self.lines, self.frame, self._shared, self._access_group
        work, in_loops, poll = self.work, self._in_loops, self.poll
        self.lines, self.frame, self._shared, self._access_group = [], [], {}, None
        self.poll = None  # only the plan's own function calls the host
        yield FunctionText(self.frame, self.lines)
        self.work, self._in_loops, self.poll = work, in_loops, poll
        self.lines, self.frame, self._shared, self._access_group = outer

    # -- memory ---------------------------------------------------------------------------------

    def variable(self, type_: str) -> str:
        """The address of new memory in the frame of the function."""
        register = self.register()
        self.frame.append(f"  {register} = alloca {type_}, align 64")
        return register

    def shared(self, type_: str, number: int) -> str:
        """The address of memory in the frame that nests use one after the other.

        A nest gives different numbers to what it needs at the same time.
        """
        key = (type_, number)
        if key not in self._shared:
            self._shared[key] = self.variable(type_)
        return self._shared[key]

    def in_frame(self, text: str) -> str:
        """Add an instruction to the entry block; its register."""
        register = self.register()
        self.frame.append(f"  {register} = {text}")
        return register

    def constant(self, type_: str, text: str) -> str:
        """The address of a constant of the module."""
        name = f"@c{len(self.globals)}"
        self.globals.append(f"{name} = private constant {type_} {text}")
        return name

    def load(self, type_: str, address: str, private: bool = False) -> str:
        """Load from an address. Private memory is that of the frame, which every step may use."""
        return self.assign(f"load {type_}, ptr {address}{'' if private else self._group}")

    def store(self, type_: str, value: str, address: str, private: bool = False) -> None:
        """Store to an address."""
        self.line(f"store {type_} {value}, ptr {address}{'' if private else self._group}")

    def widened(self, type_: str, signed: bool, value: str) -> str:
        """An integer of a type, or an ``i1``, in 64 bits."""
        if type_ == "i64":
            return value
        return self.assign(f"{'sext' if signed else 'zext'} {type_} {value} to i64")

    def piece(self, number: str, size: int, end: str) -> tuple[str, str]:
        """The steps of a piece by its number: each has `size` steps, the last perhaps fewer."""
        low = self.assign(f"mul nuw nsw i64 {number}, {size}")
        high = self.assign(f"add nuw nsw i64 {low}, {size}")
        return low, self.call("i64", "llvm.smin.i64", f"i64 {high}", f"i64 {end}")

    def element(self, type_: str, base: str, index: str) -> str:
        """The address of an element of an array."""
        return self.assign(f"getelementptr inbounds {type_}, ptr {base}, i64 {index}")

    @property
    def _group(self) -> str:
        return f", !llvm.access.group {self._access_group}" if self._access_group else ""

    # -- control --------------------------------------------------------------------------------

    def label(self) -> str:
        """A new label."""
        self._labels += 1
        return f"b{self._labels}"

    def begin(self, label: str) -> None:
        """Begin a block."""
        self.lines.append(f"{label}:")

    def jump(self, label: str, metadata: str = "") -> None:
        """End the block by a jump."""
        self.line(f"br label %{label}{metadata}")

    def branch(self, condition: str, then: str, otherwise: str) -> None:
        """End the block by a choice between two."""
        self.line(f"br i1 {condition}, label %{then}, label %{otherwise}")

    def if_(
        self,
        condition: str,
        then: Callable[[], object],
        otherwise: Callable[[], object] | None = None,
    ) -> None:
        """Write two blocks, one of which runs."""
        if condition in ("true", "false"):
            chosen = then if condition == "true" else otherwise
            if chosen is not None:
                chosen()
            return
        first, second, end = self.label(), self.label(), self.label()
        self.branch(condition, first, end if otherwise is None else second)
        self.begin(first)
        then()
        self.jump(end)
        if otherwise is not None:
            self.begin(second)
            otherwise()
            self.jump(end)
        self.begin(end)

    def loop(
        self, low: str, high: str, body: Callable[[str], object], *, independent: bool = False
    ) -> None:
        """Write a loop over low ≤ i < high.

        The steps of an `independent` one do not read what others write: LLVM may then vectorise it
        without checks of addresses.
        """
        steps = _steps(low, high)
        if self.poll is not None and steps >= LONG:
            self._loop_over_blocks(low, high, body, independent)
            return
        variable = self.variable("i64")
        head, inside, end = self.label(), self.label(), self.label()
        self.line(f"store i64 {low}, ptr {variable}")
        self.jump(head)
        self.begin(head)
        index = self.assign(f"load i64, ptr {variable}")
        self.branch(self.assign(f"icmp slt i64 {index}, {high}"), inside, end)
        self.begin(inside)
        outer, metadata = self._access_group, ""
        if independent:
            self._access_group = self._node("distinct !{}")
        work = self.measured(lambda: body(index))
        if self.poll is not None and work >= POLLED_STEP and work * steps >= LONG:
            self.poll(work)
        else:
            self.work += work * steps
        following = self.assign(f"add nuw nsw i64 {index}, 1")
        self.line(f"store i64 {following}, ptr {variable}")
        if independent:
            parallel = self._node(f'!{{!"llvm.loop.parallel_accesses", {self._access_group}}}')
            metadata = f", !llvm.loop {self._node_of_itself(parallel)}"
        self._access_group = outer
        self.jump(head, metadata)
        self.begin(end)

    def _loop_over_blocks(
        self, low: str, high: str, body: Callable[[str], object], independent: bool
    ) -> None:
        """A loop of very many steps: blocks of them, with a poll behind each."""
        whole = _steps(low, high) // LONG_BLOCK
        first = int(low)

        def block(number: str) -> None:
            distance = self.assign(f"mul nuw nsw i64 {number}, {LONG_BLOCK}")
            start = self.assign(f"add nsw i64 {distance}, {first}")

            def step(place: str) -> None:
                body(self.assign(f"add nsw i64 {start}, {place}"))

            self.loop("0", str(LONG_BLOCK), step, independent=independent)

        self.loop("0", str(whole), block)
        rest = first + whole * LONG_BLOCK
        if rest < int(high):
            self.loop(str(rest), high, body, independent=independent)

    def measured(self, body: Callable[[], object]) -> int:
        """Write code; the work that it does in each run, but for loops that poll."""
        around, in_loops, begun = self.work, self._in_loops, len(self.lines)
        self.work = self._in_loops = 0
        body()
        written = len(self.lines) - begun
        work = self.work + (written - self._in_loops) // INSTRUCTIONS + 1
        self.work, self._in_loops = around, in_loops + written
        return work

    def _node(self, text: str) -> str:
        self.metadata.append(f"!{len(self.metadata)} = {text}")
        return f"!{len(self.metadata) - 1}"

    def _node_of_itself(self, *others: str) -> str:
        own = f"!{len(self.metadata)}"
        return self._node(f"distinct !{{{', '.join((own, *others))}}}")


def _steps(low: str, high: str) -> int:
    """The number of steps of a loop, or a guess."""
    try:
        return max(int(high) - int(low), 0)
    except ValueError:
        return UNKNOWN_STEPS
