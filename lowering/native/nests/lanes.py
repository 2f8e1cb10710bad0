"""Sums in lanes: floats are added in one order, whatever vectors a processor has.

A block of up to 1024 elements is added in 32 lanes, element i in lane i % 32, and the lanes as a
tree. Blocks are added in pairs, pairs in pairs, and so on, like the digits of a binary counter. So
the bits of a sum depend on its length only, and a part of 2**n blocks can be summed elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence

from lowering.native.writer import Writer

WIDTH, VECTORS = 8, 4
LANES = WIDTH * VECTORS
BLOCK = 1024
"""Elements of a block: a multiple of the lanes."""

LEVELS = 54
"""Levels of the tree over blocks: more than a sum can have."""


def padded(count: int) -> int:
    """The least multiple of the lanes that is not less than a number of elements."""
    return -(-count // LANES) * LANES


class LaneFold:
    """A sum or product of one part of elements in lanes: `instruction` is ``fadd`` or ``fmul``.

    Folds that a nest carries out at once have different numbers.
    """

    def __init__(
        self, writer: Writer, instruction: str, type_: str, identity: str, number: int
    ) -> None:
        self.writer = writer
        self.instruction, self.type, self.identity = instruction, type_, identity
        self._vector = f"<{WIDTH} x {type_}>"
        self._lanes = [writer.variable(self._vector) for _ in range(VECTORS)]
        self._number = number
        self._stack = self._count = ""

    def begin_blocks(self) -> None:
        """Prepare for more than one block."""
        if not self._stack:
            self._stack = self.writer.shared(f"[{LEVELS} x {self.type}]", self._number)
            self._count = self.writer.variable("i64")
        self.writer.line(f"store i64 0, ptr {self._count}")

    def block(self, address: str, groups: str) -> str:
        """The sum of a number of groups of 32 consecutive elements."""
        writer, vector = self.writer, self._vector
        item = f"{self.type} {self.identity}"
        start = f"{vector} <{', '.join([item] * WIDTH)}>"
        for lanes in self._lanes:
            writer.line(f"store {start}, ptr {lanes}")

        def group(number: str) -> None:
            first = writer.assign(f"mul nuw nsw i64 {number}, {LANES}")
            for position, lanes in enumerate(self._lanes):
                place = writer.assign(f"add nuw nsw i64 {first}, {position * WIDTH}")
                source = writer.element(self.type, address, place)
                align = 4 if self.type == "float" else 8
                value = writer.assign(f"load {vector}, ptr {source}, align {align}")
                old = writer.assign(f"load {vector}, ptr {lanes}")
                new = writer.assign(f"{self.instruction} {vector} {old}, {value}")
                writer.line(f"store {vector} {new}, ptr {lanes}")

        writer.loop("0", groups, group)
        found = [writer.assign(f"load {vector}, ptr {lanes}") for lanes in self._lanes]
        while len(found) > 1:
            pairs = zip(found[::2], found[1::2], strict=True)
            found = [writer.assign(f"{self.instruction} {vector} {a}, {b}") for a, b in pairs]
        return self._across(found[0])

    def _across(self, value: str) -> str:
        """The sum of the lanes of a vector: the upper half is added to the lower one."""
        writer, width = self.writer, WIDTH
        while width > 1:
            half = width // 2
            vector, halved = f"<{width} x {self.type}>", f"<{half} x {self.type}>"
            low, high = (
                writer.assign(
                    f"shufflevector {vector} {value}, {vector} poison, "
                    f"<{half} x i32> <{', '.join(f'i32 {start + n}' for n in range(half))}>"
                )
                for start in (0, half)
            )
            value = writer.assign(f"{self.instruction} {halved} {low}, {high}")
            width = half
        return writer.assign(f"extractelement <1 x {self.type}> {value}, i64 0")

    def push(self, value: str) -> None:
        """Add the sum of a block to the tree."""
        writer, type_ = self.writer, self.type
        count = writer.assign(f"load i64, ptr {self._count}")
        carry, level = writer.variable(type_), writer.variable("i64")
        writer.line(f"store {type_} {value}, ptr {carry}")
        writer.line(f"store i64 0, ptr {level}")
        head, inside, end = writer.label(), writer.label(), writer.label()
        writer.jump(head)
        writer.begin(head)
        at = writer.assign(f"load i64, ptr {level}")
        digit = writer.assign(f"and i64 {writer.assign(f'lshr i64 {count}, {at}')}, 1")
        writer.branch(writer.assign(f"icmp ne i64 {digit}, 0"), inside, end)
        writer.begin(inside)
        before = writer.assign(f"load {type_}, ptr {writer.element(type_, self._stack, at)}")
        now = writer.assign(f"load {type_}, ptr {carry}")
        both = writer.assign(f"{self.instruction} {type_} {before}, {now}")
        writer.line(f"store {type_} {both}, ptr {carry}")
        writer.line(f"store i64 {writer.assign(f'add i64 {at}, 1')}, ptr {level}")
        writer.jump(head)
        writer.begin(end)
        now = writer.assign(f"load {type_}, ptr {carry}")
        writer.line(f"store {type_} {now}, ptr {writer.element(type_, self._stack, at)}")
        writer.line(f"store i64 {writer.assign(f'add i64 {count}, 1')}, ptr {self._count}")

    def total(self, after: str = "") -> str:
        """The sum of all blocks: what the levels hold, from the last blocks to the first; `after`
        is the sum of blocks that come after all these.
        """
        writer, type_ = self.writer, self.type
        count = writer.assign(f"load i64, ptr {self._count}")
        result = writer.variable(type_)
        writer.line(f"store {type_} {after or self.identity}, ptr {result}")

        def level(at: str) -> None:
            digit = writer.assign(f"and i64 {writer.assign(f'lshr i64 {count}, {at}')}, 1")

            def add() -> None:
                part = writer.assign(f"load {type_}, ptr {writer.element(type_, self._stack, at)}")
                old = writer.assign(f"load {type_}, ptr {result}")
                new = writer.assign(f"{self.instruction} {type_} {part}, {old}")
                writer.line(f"store {type_} {new}, ptr {result}")

            writer.if_(writer.assign(f"icmp ne i64 {digit}, 0"), add)

        writer.loop("0", str(LEVELS), level)
        return writer.assign(f"load {type_}, ptr {result}")


def chunks(extents: Sequence[int]) -> tuple[int, int, int]:
    """How loops are divided into blocks: the loop that is split, steps of it, elements of a step.

    The loops behind it are in one block.

    >>> chunks([10, 3000]), chunks([1000, 4]), chunks([5, 5])
    ((1, 1024, 1), (0, 256, 4), (0, 5, 5))
    """
    inner = 1
    for position in range(len(extents) - 1, -1, -1):
        extent = extents[position]
        if inner * extent > BLOCK or position == 0:
            return position, min(max(BLOCK // inner, 1), extent), inner
        inner *= extent
    return 0, 1, 1
