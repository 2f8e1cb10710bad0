"""Vectorisation: which accesses to consecutive points, or steps, become one vector access.

Points come in groups of `width` that begin at multiples of the width. Within a group an expression
is uniform, or consecutive (it counts up from a multiple of the width), or neither. An access whose
index is consecutive is a vector. The same holds for the steps of a loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum

from lowering.codegen.expressions import compute, expr_type, index, stored
from lowering.codegen.flatten import POINT
from lowering.codegen.preamble import c_type
from lowering.codegen.source_writer import SourceWriter
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.kernel import Store
from lowering.plan.nests.lazy_values import lazy_choices
from tracegraph.generated.dataclass import dataclass
from tracegraph.ir.scalar import Axis, Const, Expr, FloorDiv, Mod, Sum
from tracegraph.ir.scalar_values import Load
from tracegraph.ir.subexpressions import subexpressions


class Variation(Enum):
    """How an expression varies within a group."""

    UNIFORM = "the same for all points"
    CONSECUTIVE = "a multiple of the width at the first point, one more at each next"
    VARYING = "anything else"


@dataclass(frozen=True, slots=True)
class Vectors:
    """The uniform expressions and the vector accesses of a nest."""

    width: int
    uniform: tuple[Expr, ...]
    loads: tuple[Load, ...]
    stores: tuple[Store, ...]

    @property
    def accesses(self) -> tuple[Load | Store, ...]:
        """All vector accesses."""
        return (*self.loads, *self.stores)


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Threads of a warp that store contiguous groups at the same time: up to `lanes`, a power of
    two.

    `left` is the text of how many groups there are from a thread's own on; it may exceed the lanes.
    """

    lanes: int
    left: str


def vectors_of(
    stores: Iterable[Store], width: int, values: Iterable[Expr] = (), axis: int = POINT
) -> Vectors:
    """The vectors of flat stores and other flat values, for groups of `width` along an axis."""
    stores = tuple(stores)
    roots = (*values, *stored(stores))
    order = subexpressions(roots)
    later = frozenset[Expr]().union(*lazy_choices(order, roots).values())
    varies = variation(order, width, axis)
    uniform = [
        e
        for e in order
        if varies[e] is Variation.UNIFORM and type(e) is not Const and e not in later
    ]
    loads = [e for e in order if isinstance(e, Load)]
    return Vectors(
        width,
        tuple(uniform),
        tuple(load for load in loads if _is_vector(load, varies)),
        tuple(store for store in stores if _is_vector(store, varies)),
    )


def pack(access: Load | Store, width: int) -> str:
    """The C++ type of the elements of one vector access."""
    return f"tg_pack<{c_type(access.buffer.type.dtype)}, {width}>"


def pack_of(expr: Expr, width: int) -> str:
    """The C++ type of `width` values of an expression."""
    return f"tg_pack<{expr_type(expr)}, {width}>"


def alignment_test(
    writer: SourceWriter, accesses: Iterable[Load | Store], width: int
) -> str | None:
    """The test that arguments are aligned for vectors; None if no access is to an argument.

    All other buffers begin at multiples of 256 bytes.
    """
    given = dict.fromkeys(access.buffer for access in accesses if access.buffer.space == "input")
    return _test(writer, given, _vector_bytes(given, width), None) if given else None


def declare_aligned(
    writer: SourceWriter,
    accesses: Iterable[Load | Store],
    width: int,
    start: str | None = None,
    anchored: Buffer | None = None,
) -> dict[Buffer, str]:
    """Declare whether buffers are aligned for vectors of `width` elements: a variable for each
    whose alignment is not known.

    Vectors begin `start` elements after the buffers' begin; those of `anchored` are aligned.
    """
    buffers = dict.fromkeys(access.buffer for access in accesses)
    unknown = [b for b in buffers if b != anchored and (b.space == "input" or start is not None)]
    if not unknown:
        return {}
    name = writer.fresh()
    writer.line(
        f"const bool {name} = {_test(writer, unknown, _vector_bytes(unknown, width), start)};"
    )
    return dict.fromkeys(unknown, name)


def _vector_bytes(buffers: Iterable[Buffer], width: int) -> int:
    return max(buffer.type.dtype.itemsize for buffer in buffers) * width


def _test(writer: SourceWriter, buffers: Iterable[Buffer], nbytes: int, start: str | None) -> str:
    names = [writer.pointers[buffer] for buffer in buffers]
    places = [name if start is None else f"{name} + {start}" for name in names]
    addresses = " | ".join(f"tg_u64({place})" for place in places)
    return f"(({addresses}) & {nbytes - 1}) == 0"


def anchor(vectors: Vectors) -> Buffer | None:
    """The argument at whose aligned addresses groups begin: the first that is stored to, since
    element-wise stores cost most.

    None if there is none, or if an index needs groups to begin at multiples of the width.
    """
    given = [store.buffer for store in vectors.stores if store.buffer.space == "input"]
    indices = [access.indices[0] for access in vectors.accesses]
    parts = subexpressions((*indices, *vectors.uniform))
    shiftable = all(isinstance(part, Axis | Sum | Const) for part in parts)
    return given[0] if given and shiftable else None


def start_text(writer: SourceWriter, anchored: Buffer, width: int) -> str:
    """Where groups begin so that a buffer is aligned there: from 1 - width to 0."""
    place = f"tg_u64({writer.pointers[anchored]})"
    return f"-int({place} / {anchored.type.dtype.itemsize} & {width - 1})"


def address(writer: SourceWriter, access: Load | Store) -> str:
    """The address of a flat access whose index is computed, as text."""
    return f"{writer.pointers[access.buffer]} + {index(writer, access.indices[0])}"


def load_text(writer: SourceWriter, load: Load, width: int, aligned: Mapping[Buffer, str]) -> str:
    """The vector at a load, whose index is computed; `aligned` comes from `declare_aligned`."""
    place = address(writer, load)
    if load.buffer in aligned:
        return f"tg_load<{width}>({place}, {aligned[load.buffer]})"
    return f"*reinterpret_cast<const {pack(load, width)}*>({place})"


def store_line(
    writer: SourceWriter,
    store: Store,
    width: int,
    text: str,
    aligned: Mapping[Buffer, str],
    neighbours: Neighbours | None = None,
) -> str:
    """The statement that stores a vector, cooperatively with `neighbours` if they are given and the
    buffer may be misaligned.
    """
    place = address(writer, store)
    if store.buffer in aligned and neighbours is not None:
        lanes, left = neighbours.lanes, neighbours.left
        test = aligned[store.buffer]
        return f"tg_store_together<{lanes}>({place}, {text}, {test}, thread, {left});"
    if store.buffer in aligned:
        return f"tg_store({place}, {text}, {aligned[store.buffer]});"
    return f"*reinterpret_cast<{pack(store, width)}*>({place}) = {text};"


def is_contiguous(store: Store, axis: int) -> bool:
    """Whether the groups of a vector store along an axis are contiguous in memory."""
    position = store.indices[0]
    terms = position.terms if isinstance(position, Sum) else ((position, 1),)
    moving = [(term, factor) for term, factor in terms if _moves(term, axis)]
    return len(moving) == 1 and isinstance(moving[0][0], Axis) and moving[0][1] == 1


def _moves(expr: Expr, axis: int) -> bool:
    return any(isinstance(e, Axis) and e.number == axis for e in subexpressions((expr,)))


def compute_uniform(writer: SourceWriter, vectors: Vectors, point: Expr, first: str) -> None:
    """Compute the uniform expressions of the group that begins at the point `first`."""
    with writer.scope():
        writer.bind(point, first)
        compute(writer, vectors.uniform)
        names = {expr: writer.name(expr) for expr in vectors.uniform}
    for expr, name in names.items():
        if name is not None:
            writer.bind(expr, name)


def _is_vector(access: Load | Store, varies: Mapping[Expr, Variation]) -> bool:
    return access.guard is None and varies[access.indices[0]] is Variation.CONSECUTIVE


def variation(order: Iterable[Expr], width: int, axis: int) -> dict[Expr, Variation]:
    """How expressions, operands before users, vary within groups of `width` along an axis."""
    variations: dict[Expr, Variation] = {}
    for expr in order:  # operands come first
        parts = [variations[child] for child in expr.children]
        match expr:
            case Axis(number=number) if number == axis:
                variations[expr] = Variation.CONSECUTIVE
            case _ if all(part is Variation.UNIFORM for part in parts):
                variations[expr] = Variation.UNIFORM
            case FloorDiv(divisor=divisor) if divisor % width == 0:
                variations[expr] = _if_consecutive(parts[0], Variation.UNIFORM)
            case Mod(divisor=divisor) if divisor % width == 0:
                variations[expr] = _if_consecutive(parts[0], Variation.CONSECUTIVE)
            case Sum():
                variations[expr] = _variation_of_sum(expr, parts, width)
            case _:
                variations[expr] = Variation.VARYING
    return variations


def _if_consecutive(part: Variation, then: Variation) -> Variation:
    return then if part is Variation.CONSECUTIVE else Variation.VARYING


def _variation_of_sum(expr: Sum, parts: list[Variation], width: int) -> Variation:
    factors = [factor for _, factor in expr.terms]
    moving = [f for part, f in zip(parts, factors, strict=True) if part is not Variation.UNIFORM]
    still = [f for part, f in zip(parts, factors, strict=True) if part is Variation.UNIFORM]
    if Variation.VARYING in parts or moving != [1] or any(f % width for f in (*still, expr.offset)):
        return Variation.VARYING
    return Variation.CONSECUTIVE
