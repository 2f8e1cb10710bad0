"""Sums in lanes: floats are added in one order, whatever vectors a processor has.

A block of up to 1024 elements is added in 32 lanes, element i in lane i % 32, and the lanes as a
tree. Blocks are added in pairs, pairs in pairs, and so on, like the digits of a binary counter. So
the bits of a sum depend on its length only, and a part of 2**n blocks can be summed elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lowering.native.writer import Writer

WIDTH, VECTORS = 8, 4
LANES = WIDTH * VECTORS
BLOCK = 1024
"""Elements of a block: a multiple of the lanes."""

LEVELS = 54
"""Levels of the tree over blocks: more than a sum can have."""


VectorAt = Callable[[str, int], str]
"""The vector of the elements from a place on. The number says how many of them exist."""


def splat(writer: Writer, type_: str, value: str) -> str:
    """A vector of one value."""
    vector = f"<{WIDTH} x {type_}>"
    if not value.startswith("%"):
        return f"<{', '.join([f'{type_} {value}'] * WIDTH)}>"
    first = writer.assign(f"insertelement {vector} poison, {type_} {value}, i64 0")
    return writer.assign(
        f"shufflevector {vector} {first}, {vector} poison, <{WIDTH} x i32> zeroinitializer"
    )


def load_vector(writer: Writer, type_: str, start: str, place: str, live: int) -> str:
    """Load the elements from a place on; the first `live` of them exist."""
    vector, size = f"<{WIDTH} x {type_}>", 4 if type_ == "float" else 8
    address = writer.element(type_, start, place)
    if live == WIDTH:
        return writer.assign(f"load {vector}, ptr {address}, align {size}")
    name = f"llvm.masked.load.v{WIDTH}f{8 * size}.p0"
    mask = f"<{WIDTH} x i1>"
    writer.declare(f"declare {vector} @{name}(ptr, i32, {mask}, {vector})")
    given = f"ptr {address}, i32 {size}, {mask} {live_lanes(live)}, {vector} zeroinitializer"
    return writer.assign(f"call {vector} @{name}({given})")


def live_lanes(live: int) -> str:
    """The mask of the first `live` lanes."""
    return f"<{', '.join('i1 ' + ('true' if n < live else 'false') for n in range(WIDTH))}>"


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

    def block(self, vector_at: VectorAt, count: int) -> str:
        """The sum of `count` elements; `vector_at` gives eight of them from a place on.

        Of the last eight, fewer may be there: lanes without an element stay as they are.
        """
        writer, vector = self.writer, self._vector
        start = splat(writer, self.type, self.identity)
        for lanes in self._lanes:
            writer.line(f"store {vector} {start}, ptr {lanes}")
        groups, rest = divmod(count, LANES)

        def add(lanes: str, place: str, live: int) -> None:
            value = vector_at(place, live)
            if live < WIDTH:
                mask = live_lanes(live)
                value = writer.assign(
                    f"select <{WIDTH} x i1> {mask}, {vector} {value}, {vector} {start}"
                )
            old = writer.assign(f"load {vector}, ptr {lanes}")
            new = writer.assign(f"{self.instruction} {vector} {old}, {value}")
            writer.line(f"store {vector} {new}, ptr {lanes}")

        def group(number: str) -> None:
            first = writer.assign(f"mul nuw nsw i64 {number}, {LANES}")
            for position, lanes in enumerate(self._lanes):
                place = writer.assign(f"add nuw nsw i64 {first}, {position * WIDTH}")
                add(lanes, place, WIDTH)

        if groups:
            writer.loop("0", str(groups), group)
        for position, lanes in enumerate(self._lanes):
            live = min(WIDTH, rest - position * WIDTH)
            if live > 0:
                add(lanes, str(groups * LANES + position * WIDTH), live)
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


def blocks_of(extents: Sequence[int]) -> tuple[int, int, int]:
    """How loops are divided into blocks: the loop that is split, steps of it, elements of a step.

    The loops behind it are in one block.

    >>> blocks_of([10, 3000]), blocks_of([1000, 4]), blocks_of([5, 5])
    ((1, 1024, 1), (0, 256, 4), (0, 5, 5))
    """
    inner = 1
    for position in range(len(extents) - 1, -1, -1):
        extent = extents[position]
        if inner * extent > BLOCK or position == 0:
            return position, min(max(BLOCK // inner, 1), extent), inner
        inner *= extent
    return 0, 1, 1
