"""The Op record and the registry of ops.

An op is one record with everything that is known of it: the type of its result, its NumPy
reference, the form of one element of its result (all that lowering reads), and samples for the
registry-wide conformance test. `arrays.eager.apply` applies it to arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import lru_cache
from importlib import import_module
from typing import Any, Protocol

import numpy as np

from tracegraph.generated.dataclass import dataclass
from tracegraph.ir.derivative import Derivative
from tracegraph.ir.scalar import Expr
from tracegraph.ir.types import ArrayType, canonical_type


class Operand(Protocol):
    """An operand as the element rule of an op sees it."""

    type: ArrayType

    def __getitem__(self, index: tuple[Expr, ...]) -> Expr:
        """The element at an index that is in range."""

    def at(self, index: tuple[Expr, ...], guard: Expr | None) -> Expr:
        """The element at an index that may be out of range where the guard does not hold."""


@dataclass(frozen=True, slots=True)
class Combiner:
    """An associative binary operation that a reduction, scan or scatter folds with.

    `ufunc` is its NumPy form, a ufunc or what has `reduce` and `accumulate` as ufuncs do. `c` is C
    text of {0} and {1} by dtype kind, and `definition` what it needs, as in `Elementwise`.
    """

    name: str
    ufunc: Any
    identity: Callable[[np.dtype[Any]], Any]
    c: Mapping[str, str]
    definition: str = ""


CUSTOM_NAMESPACE = "tg_custom_"
"""What the C++ namespaces of users' functions begin with; a unit with none has no definitions."""


@dataclass(frozen=True, slots=True)
class Elementwise:
    """One result element from the operands' elements at the same (broadcast) index.

    `c` is C++ text by the kind of the first operand's dtype ('b' bool, 'i', 'u', 'f', 'c'), with
    {0}, {1}, … for operands, {name} for attrs, {T} for the result's C type. float16 and bfloat16
    arrive as float and the result is rounded back; but the text under 'e', where there is one,
    takes and gives the type itself. `cost` orders ops: 0 free, 1 arithmetic, 8 transcendental.
    `definition` is C++ that the texts need, in a guard like that of a header.
    """

    c: Mapping[str, str]
    cost: int = 1
    definition: str = ""


@dataclass(frozen=True, slots=True)
class Indexed:
    """One result element by re-indexing: views, selections, gathers, generated values.

    `element(index, operands, out, **attrs)` returns the scalar expression of result element
    `index`. `view` says that the result only renames elements of operand 0. Where consecutive
    elements of the result may be anywhere in operand 0, `run(type, **attrs)` is the number of those
    that are also consecutive there.
    """

    element: Callable[..., Expr]
    view: bool = False
    run: Callable[..., int] | None = None


@dataclass(frozen=True, slots=True)
class Reduction:
    """A fold over the axes in attr `axes` (sorted, distinct, not kept). `arg` reductions yield
    indices.
    """

    combiner: Combiner
    arg: bool = False


@dataclass(frozen=True, slots=True)
class Scan:
    """A running fold along attr `axis`, of the operand's shape."""

    combiner: Combiner


@dataclass(frozen=True, slots=True)
class Scatter:
    """Operand 0 with elements replaced by, or combined with, those of operand 1 (the updates).

    `target(index, operands, out, **attrs)` gives, for an index of the updates, the index in the
    result and a guard (None: always written). `combiner` is None for replacing. `repeats(attrs,
    types)` is the number of leading update axes that may hit one element twice, and are applied in
    order.
    """

    target: Callable[..., tuple[tuple[Expr, ...], Expr | None]]
    repeats: Callable[[Mapping[str, Any], Sequence[ArrayType]], int]
    combiner: Combiner | None = None


@dataclass(frozen=True, slots=True)
class Opaque:
    """An op without element rules, such as a matrix product: lowering has a rule for its name.

    `of_program`: its attributes are objects of one program, which no cache keeps, and it is never
    computed before the program runs.
    """

    of_program: bool = False


@dataclass(frozen=True, slots=True)
class Collective(Opaque):
    """An op that the devices along the axes of a mesh, in attr `axes`, carry out together.

    Attr `count` is the number of these devices. `varies` says whether the result differs between
    them. `over_lanes(lanes, axis, *operands, **attrs)` records it for lanes of `vmap` in place of
    the devices along one of the axes: the operands are batched, and so is the result if it varies.
    `of_equal(emit, operand, count)` is what it gives of an operand that is the same on all devices;
    None: itself.
    """

    varies: bool = False
    over_lanes: Callable[..., Any] | None = None
    of_equal: Callable[..., Any] | None = None


@dataclass(frozen=True, slots=True)
class Control:
    """An op with regions that lowering treats by name: cond, switch, while_loop, scan."""


@dataclass(frozen=True, slots=True)
class Call:
    """An op that stands for its first region, which lowering puts in its place.

    Passes keep its operands and results as they are. Derivatives read the other regions.
    """


@dataclass(frozen=True, slots=True)
class Effect:
    """An op that does something besides computing: (token, *values) -> token, treated by name."""


OpForm = Elementwise | Indexed | Reduction | Scan | Scatter | Opaque | Control | Call | Effect


@dataclass(frozen=True, slots=True)
class Sample:
    """Operands and attrs for the conformance test."""

    operands: tuple[Any, ...]
    attrs: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Op:
    """One operation.

    Args:
        name: what printed programs call it.
        doc: one line.
        type_rule: `type_rule(*types, **attrs)`, with `regions=` for ops that have them; returns an
            ArrayType, or a tuple of them for an op of several results. Operand dtypes are final.
        reference: the same with NumPy arrays: the definition of the op.
        form: how lowering makes its elements.
        samples: operands for the conformance test.
        promote: the dtypes that the operands are cast to before the op is applied, by their types.
        derivative: how tangents of the result depend on those of the operands.
        batch: the batching rule, where the form does not imply it: `batch(lanes, operands, batched,
            **attrs)`; see `ops/batching.py`.
        version: of its meaning, for programs in files; see `ir/stored/upgrades.py`.
    """

    name: str
    doc: str
    type_rule: Callable[..., Any]
    reference: Callable[..., Any]
    form: OpForm
    samples: Callable[[], Sequence[Sample]]
    promote: Callable[..., Sequence[np.dtype[Any]]] | None = None
    derivative: Derivative | None = None
    batch: Callable[..., Any] | None = None
    version: int = 1
    is_view: bool = field(init=False, repr=False)
    """Whether the result only renames elements of operand 0."""
    of_program: bool = field(init=False, repr=False)
    """Whether its attributes are objects of one program, which no cache keeps."""

    def __post_init__(self) -> None:
        form = self.form
        found = isinstance(form, Effect) or (isinstance(form, Opaque) and form.of_program)
        object.__setattr__(self, "of_program", found)
        object.__setattr__(self, "is_view", isinstance(self.form, Indexed) and self.form.view)

    def result_types(
        self, types: Sequence[ArrayType], attrs: Mapping[str, Any], regions: tuple[Any, ...] = ()
    ) -> tuple[ArrayType, ...]:
        """The types of the results, always as a tuple."""
        if regions:
            return _as_tuple(self.type_rule(*types, **attrs, regions=regions))
        if self.of_program:
            return _as_tuple(self.type_rule(*types, **attrs))
        return _result_types(self, tuple(types), tuple(attrs.items()))

    def application(
        self, types: tuple[ArrayType, ...], attrs: Mapping[str, Any]
    ) -> tuple[Sequence[np.dtype[Any]], tuple[ArrayType, ...]]:
        """The dtypes that operands are cast to (none if none changes), and the result types."""
        if self.of_program:
            return _application.__wrapped__(self, types, tuple(attrs.items()))
        return _application(self, types, tuple(attrs.items()) if attrs else ())

    def __repr__(self) -> str:
        return f"<op {self.name}>"


@dataclass(frozen=True, slots=True, eq=False)
class DeclaredOp(Op):
    """An op that a user declared, which is in no registry.

    Args:
        where: the function's name with its place, for messages.
        function: the NumPy function that they wrote.
        rule: its derivative as they gave it: a function, ``"reference"`` or whatever it may be.
        made_by: of an op that is known by data, the function and the arguments that make it.
    """

    where: str = ""
    function: Callable[..., Any] | None = None
    rule: Any = None
    made_by: tuple[Callable[..., DeclaredOp], tuple[Any, ...]] | None = None


def _as_tuple(types: ArrayType | Sequence[ArrayType]) -> tuple[ArrayType, ...]:
    return (types,) if isinstance(types, ArrayType) else tuple(types)


@lru_cache(maxsize=4096)
def _result_types(
    op: Op, types: tuple[ArrayType, ...], attrs: tuple[tuple[str, Any], ...]
) -> tuple[ArrayType, ...]:
    """Type rules, memoized: programs apply few ops to few types, again and again."""
    return tuple(map(canonical_type, _as_tuple(op.type_rule(*types, **dict(attrs)))))


@lru_cache(maxsize=4096)
def _application(
    op: Op, types: tuple[ArrayType, ...], attrs: tuple[tuple[str, Any], ...]
) -> tuple[Sequence[np.dtype[Any]], tuple[ArrayType, ...]]:
    dtypes: Sequence[np.dtype[Any]] = ()
    if op.promote is not None:
        dtypes = op.promote(*types, **dict(attrs))
        pairs = list(zip(types, dtypes, strict=True))
        if all(t.dtype == d for t, d in pairs):
            dtypes = ()
        else:
            types = tuple([ArrayType(d, t.shape, t.weak) for t, d in pairs])
    return dtypes, op.result_types(types, dict(attrs))


_REGISTRY: dict[str, Op] = {}

_RECORDS = "tracegraph.ops"
"""The package that registers the ops; imported when one is first asked for."""


def register(op: Op) -> Op:
    """Add an op to the registry and return it.

    Raises:
        ValueError: the name is taken.
    """
    if op.name in _REGISTRY:
        raise ValueError(f"an op named {op.name!r} is registered already")
    _REGISTRY[op.name] = op
    return op


def get(name: str) -> Op:
    """The op of a name.

    Raises:
        KeyError: there is none.
    """
    if name not in _REGISTRY:
        import_module(_RECORDS)
    return _REGISTRY[name]


def find(name: str) -> Op | None:
    """The op of a name, or None."""
    try:
        return get(name)
    except KeyError:
        return None


def all_ops() -> Iterator[Op]:
    """Every registered op, in order of registration."""
    import_module(_RECORDS)
    return iter(tuple(_REGISTRY.values()))
