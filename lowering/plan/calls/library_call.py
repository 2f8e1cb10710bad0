"""Library calls: what a `LibraryNode` runs, as data.

On the host a call is a function of NumPy arrays, which the call itself names. On CUDA it is
captured into the graph, by the entry for its class in `lowering.cuda.libraries.library_calls`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import Any, ClassVar, Literal

import numpy as np

from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.buffer_fields import HoldsBuffers, Names, items_of
from lowering.plan.nests.work import Work, real_name
from tracegraph.ir.op import Op
from tracegraph.ir.record import record
from tracegraph.ir.types import row_major_strides

IfSkipped = Literal["idle", "runs", "counted", "stays"]
"""What becomes of a node that is skipped where it has no conditional node around it.

``"idle"``: it has predicates, and does nothing. ``"runs"``: it runs all the same, and its results
are not used. ``"counted"``: it is never skipped, and may leave a loop none of whose steps are.
``"stays"``: it never leaves its branch or loop. Those that can leave have a field `within`.
"""


@record
class StridedArray(HoldsBuffers):
    """An array inside a buffer: offset and strides in elements."""

    buffer: Names[Buffer]
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @classmethod
    def whole(cls, buffer: Buffer) -> StridedArray:
        """All of a buffer."""
        shape = buffer.type.shape
        return cls(buffer, 0, shape, row_major_strides(shape))

    @property
    def nbytes(self) -> int:
        """The bytes of its elements."""
        return prod(self.shape) * self.buffer.type.dtype.itemsize

    @property
    def distinct_bytes(self) -> int:
        """The bytes of its elements, those once that it repeats along an axis."""
        repeated = zip(self.shape, self.strides, strict=True)
        return prod([n for n, s in repeated if s]) * self.buffer.type.dtype.itemsize

    def address(self, base: Callable[[Buffer], int]) -> int:
        """The address of its first element, given those of buffers."""
        return base(self.buffer) + self.offset * self.buffer.type.dtype.itemsize

    def __str__(self) -> str:
        start = f"+{self.offset}" if self.offset else ""
        return f"{self.buffer}{start}:{','.join(map(str, self.strides))}"


class LibraryCall(HoldsBuffers):
    """Base of library calls: frozen records, compared by identity.

    A call reads `inputs`, writes all of `outputs`, and has no other visible effect. The types of
    its fields say which arrays these are. Capture fixes
    the addresses of all arrays but `batches`, so the rule that plans it takes operands from
    `lowering.planning.library_operands`, which copies arguments into scratch if necessary. Or it is
    `recaptured`.
    """

    __slots__ = ()

    noun: ClassVar[str]
    """Names the class in sentences: ``"a product"``."""

    if_skipped: ClassVar[IfSkipped] = "runs"
    """What becomes of it where a loop that it is in is unrolled: see `IfSkipped`. In most cases a
    step past the end runs it all the same, and its results are not used."""

    may_be_phase: ClassVar[bool] = False
    """Whether it may be a part of a loop in one kernel, which makes the call without the library.
    """

    exclusive: ClassVar[str | None] = None
    """What it needs for itself besides the workspace of a library: calls with the same word run in
    the order of the Plan, in all bodies."""

    alignment: ClassVar[int] = 1
    """Bytes: the addresses of arrays are multiples of that, as far as they may move. The library
    chooses a kernel before it can see them."""

    @property
    def inputs(self) -> tuple[StridedArray, ...]:
        """The arrays that it reads."""
        return items_of(self, "reads")

    @property
    def outputs(self) -> tuple[StridedArray, ...]:
        """The arrays that it writes. One that it also reads is an input as well."""
        return items_of(self, "writes")

    @property
    def operands(self) -> tuple[StridedArray, ...]:
        """All arrays, as arguments of `run_host`."""
        return *self.inputs, *self.outputs

    @property
    def batches(self) -> tuple[StridedArray, ...]:
        """Matrices, or batches of them, whose addresses the library reads from memory when it runs:
        from pointer arrays. These may be arguments and results, which move from launch to launch.
        """
        return ()

    @property
    def recaptured(self) -> bool:
        """Whether it is captured again, aside, for other addresses: its nodes are given the
        parameters of those. So its arrays may be arguments and results. Only at the top of a graph.
        """
        return False

    @property
    def movable_arrays(self) -> tuple[StridedArray, ...]:
        """The arrays that may be arguments and results."""
        return self.operands if self.recaptured else self.batches

    @property
    def fixed_buffers(self) -> frozenset[Buffer]:
        """The buffers of all other arrays, whose addresses are stored in captured nodes."""
        movable = self.movable_arrays
        return frozenset([array.buffer for array in self.operands if array not in movable])

    @property
    def owners(self) -> Mapping[str, Any]:
        """What the nodes of its capture need besides its arrays, by names for reports."""
        return {}

    @property
    def operations(self) -> int:
        """How many floating-point operations it makes, for estimates of time."""
        return 0

    @property
    def work(self) -> Work:
        """What it does, as `Node.work` has it."""
        nbytes = sum([array.distinct_bytes for array in self.operands])
        arrays = self.outputs or self.inputs
        kind = real_name(arrays[0].buffer.type.dtype) if arrays else "int"
        return Work(nbytes, nbytes, {kind: self.operations} if self.operations else {})

    @property
    def name(self) -> str:
        """Its name in reports of what nodes keep alive."""
        raise NotImplementedError

    @property
    def title(self) -> str:
        """What it does, in a few words."""
        return self.name

    @property
    def text(self) -> str:
        """What a printed Plan says of it."""
        inputs, outputs = (", ".join(map(str, each)) for each in (self.inputs, self.outputs))
        return f"{self.name}: {outputs} = {inputs}"

    @property
    def purpose(self) -> str:
        """How it gets its arrays, if that deserves a word: see `Node.purpose`."""
        return ""

    @property
    def run_host(self) -> Callable[..., object]:
        """A function of the operands as NumPy arrays, which writes the outputs."""
        raise NotImplementedError


def by_reference(op: Op, attrs: Mapping[str, Any], count: int) -> Callable[..., object]:
    """A function that writes the results of an op of its first `count` operands to the others."""
    attrs = dict(attrs)

    def run(*operands: np.ndarray[Any, Any]) -> None:
        with np.errstate(all="ignore"):
            found = op.reference(*operands[:count], **attrs)
        values = found if isinstance(found, tuple) else (found,)
        for out, value in zip(operands[count:], values, strict=True):
            out[...] = value

    return run
