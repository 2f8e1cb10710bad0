"""Vectors: accesses of a thread's consecutive points, or steps, that can be made as one.

Points are dealt out in groups of `width`, each beginning at a multiple of the width. Over a group
an expression is the same for all points, or counts up from a multiple of the width, or neither. The
same holds for the steps of a loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from lowering.codegen.expressions import compute, expr_type, index, stored
from lowering.codegen.flatten import POINT
from lowering.codegen.preamble import c_type
from lowering.codegen.source_writer import Body
from lowering.plan.buffer import Buffer
from lowering.plan.kernel import Store
from tracegraph.ir.scalar import Axis, Const, Expr, FloorDiv, Load, Mod, Sum
from tracegraph.ir.subexpressions import subexpressions


class Spread(Enum):
    """How an expression varies over the points of a group."""

    UNIFORM = "the same for all"
    COUNTING = "a multiple of the width, and up from there by one a point"
    VARYING = "otherwise"


@dataclass(frozen=True, slots=True)
class Vectors:
    """What of a nest is the same for the points of a group, and what is accessed as a vector."""

    width: int
    uniform: tuple[Expr, ...]
    loads: tuple[Load, ...]
    stores: tuple[Store, ...]

    @property
    def accesses(self) -> tuple[Load | Store, ...]:
        """All accesses that are made as vectors."""
        return (*self.loads, *self.stores)


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Threads that take groups which follow each other, at the same time: up to `lanes`, a power of
    two that divides the threads of a warp; from a thread's own on there are `left` groups, or more
    than there are lanes.
    """

    lanes: int
    left: str


def vectors_of(
    stores: Iterable[Store], width: int, values: Iterable[Expr] = (), axis: int = POINT
) -> Vectors:
    """The vectors of flat stores and other flat values, for groups of `width` along an axis."""
    stores = tuple(stores)
    order = subexpressions((*values, *stored(stores)))
    spread = _spread(order, width, axis)
    uniform = [e for e in order if spread[e] is Spread.UNIFORM and type(e) is not Const]
    loads = [e for e in order if isinstance(e, Load)]
    return Vectors(
        width,
        tuple(uniform),
        tuple(load for load in loads if _is_vector(load, spread)),
        tuple(store for store in stores if _is_vector(store, spread)),
    )


def pack(access: Load | Store, width: int) -> str:
    """The C++ type of the elements of one vector access."""
    return f"tg_pack<{c_type(access.buffer.type.dtype)}, {width}>"


def pack_of(expr: Expr, width: int) -> str:
    """The C++ type of as many values of an expression."""
    return f"tg_pack<{expr_type(expr)}, {width}>"


def alignment_test(body: Body, accesses: Iterable[Load | Store], width: int) -> str | None:
    """The test that arguments are aligned as vectors must be; None if there are none.

    All other memory is aligned: it begins at multiples of 256 bytes.
    """
    given = dict.fromkeys(access.buffer for access in accesses if access.buffer.space == "input")
    return _test(body, given, _vector_bytes(given, width), None) if given else None


def declare_aligned(
    body: Body,
    accesses: Iterable[Load | Store],
    width: int,
    start: str | None = None,
    anchored: Buffer | None = None,
) -> dict[Buffer, str]:
    """Declare whether memory is aligned as vectors of `width` elements must be: a variable for each
    buffer of which that is not known.

    Vectors begin `start` elements from the buffers' begin on, and those of `anchored` are aligned.
    """
    buffers = dict.fromkeys(access.buffer for access in accesses)
    unknown = [b for b in buffers if b != anchored and (b.space == "input" or start is not None)]
    if not unknown:
        return {}
    name = body.fresh()
    body.line(f"const bool {name} = {_test(body, unknown, _vector_bytes(unknown, width), start)};")
    return dict.fromkeys(unknown, name)


def _vector_bytes(buffers: Iterable[Buffer], width: int) -> int:
    return max(buffer.type.dtype.itemsize for buffer in buffers) * width


def _test(body: Body, buffers: Iterable[Buffer], nbytes: int, start: str | None) -> str:
    names = [body.pointers[buffer] for buffer in buffers]
    places = [name if start is None else f"{name} + {start}" for name in names]
    addresses = " | ".join(f"tg_u64({place})" for place in places)
    return f"(({addresses}) & {nbytes - 1}) == 0"


def anchor(vectors: Vectors) -> Buffer | None:
    """The argument that is to be aligned where groups begin: the first that is stored to, since
    storing element by element costs most.

    None if there is none, or groups must begin at multiples of the width.
    """
    given = [store.buffer for store in vectors.stores if store.buffer.space == "input"]
    indices = [access.indices[0] for access in vectors.accesses]
    parts = subexpressions((*indices, *vectors.uniform))
    shiftable = all(isinstance(part, Axis | Sum | Const) for part in parts)
    return given[0] if given and shiftable else None


def start_text(body: Body, anchored: Buffer, width: int) -> str:
    """Where groups begin so that a buffer is aligned there: an expression from 1 - width to 0."""
    place = f"tg_u64({body.pointers[anchored]})"
    return f"-int({place} / {anchored.type.dtype.itemsize} & {width - 1})"


def address(body: Body, access: Load | Store) -> str:
    """The address of a flat access whose index is computed, as text."""
    return f"{body.pointers[access.buffer]} + {index(body, access.indices[0])}"


def load_text(body: Body, load: Load, width: int, aligned: Mapping[Buffer, str]) -> str:
    """The vector at a load, whose index is computed; `aligned` comes from `declare_aligned`."""
    place = address(body, load)
    if load.buffer in aligned:
        return f"tg_load<{width}>({place}, {aligned[load.buffer]})"
    return f"*reinterpret_cast<const {pack(load, width)}*>({place})"


def store_line(
    body: Body,
    store: Store,
    width: int,
    text: str,
    aligned: Mapping[Buffer, str],
    neighbours: Neighbours | None = None,
) -> str:
    """The statement that stores a vector, as `load_text` loads one; together with `neighbours`, if
    their vectors follow each other.
    """
    place = address(body, store)
    if store.buffer in aligned and neighbours is not None:
        lanes, left = neighbours.lanes, neighbours.left
        test = aligned[store.buffer]
        return f"tg_store_together<{lanes}>({place}, {text}, {test}, thread, {left});"
    if store.buffer in aligned:
        return f"tg_store({place}, {text}, {aligned[store.buffer]});"
    return f"*reinterpret_cast<{pack(store, width)}*>({place}) = {text};"


def runs_on(store: Store, axis: int) -> bool:
    """Whether the groups of a vector along an axis follow each other in memory."""
    position = store.indices[0]
    terms = position.terms if isinstance(position, Sum) else ((position, 1),)
    moving = [(term, factor) for term, factor in terms if _moves(term, axis)]
    return len(moving) == 1 and isinstance(moving[0][0], Axis) and moving[0][1] == 1


def _moves(expr: Expr, axis: int) -> bool:
    return any(isinstance(e, Axis) and e.number == axis for e in subexpressions((expr,)))


def compute_uniform(body: Body, vectors: Vectors, point: Expr, first: str) -> None:
    """Compute what is the same for all points of the group that begins at the point `first`."""
    with body.scope():
        body.bind(point, first)
        compute(body, vectors.uniform)
        names = {expr: body.name(expr) for expr in vectors.uniform}
    for expr, name in names.items():
        if name is not None:
            body.bind(expr, name)


def _is_vector(access: Load | Store, spread: Mapping[Expr, Spread]) -> bool:
    return access.guard is None and spread[access.indices[0]] is Spread.COUNTING


def _spread(order: Iterable[Expr], width: int, axis: int) -> dict[Expr, Spread]:
    found: dict[Expr, Spread] = {}
    for expr in order:  # operands come before what is made of them
        parts = [found[child] for child in expr.children]
        match expr:
            case Axis(number=number) if number == axis:
                found[expr] = Spread.COUNTING
            case _ if all(part is Spread.UNIFORM for part in parts):
                found[expr] = Spread.UNIFORM
            case FloorDiv(divisor=divisor) if divisor % width == 0:
                found[expr] = _if_counting(parts[0], Spread.UNIFORM)
            case Mod(divisor=divisor) if divisor % width == 0:
                found[expr] = _if_counting(parts[0], Spread.COUNTING)
            case Sum():
                found[expr] = _spread_of_sum(expr, parts, width)
            case _:
                found[expr] = Spread.VARYING
    return found


def _if_counting(part: Spread, then: Spread) -> Spread:
    return then if part is Spread.COUNTING else Spread.VARYING


def _spread_of_sum(expr: Sum, parts: list[Spread], width: int) -> Spread:
    factors = [factor for _, factor in expr.terms]
    moving = [f for part, f in zip(parts, factors, strict=True) if part is not Spread.UNIFORM]
    still = [f for part, f in zip(parts, factors, strict=True) if part is Spread.UNIFORM]
    if Spread.VARYING in parts or moving != [1] or any(f % width for f in (*still, expr.offset)):
        return Spread.VARYING
    return Spread.COUNTING
