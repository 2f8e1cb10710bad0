"""The element and target rules of ops reproduce their references, point by point."""

from __future__ import annotations

import itertools
import operator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tracegraph.ops  # noqa: F401  registers every op
from tracegraph.ir import op as registry
from tracegraph.ir import scalar, scalar_values
from tracegraph.ir.op import Indexed, Op, Sample, Scatter
from tracegraph.ir.scalar import Axis, Expr, affine
from tracegraph.ir.scalar_values import Load
from tracegraph.ir.subexpressions import subexpressions
from tracegraph.ir.types import ArrayType, type_of

RELATIONS = {"<": operator.lt, ">=": operator.ge, "==": operator.eq}


# evaluating an expression at one point


@dataclass(frozen=True, eq=False)
class Memory:
    """A buffer: an array with a type."""

    data: np.ndarray

    @property
    def type(self) -> ArrayType:
        return type_of(self.data)


def evaluate(root: Expr, point: tuple[int, ...]) -> Any:
    """The value of an expression; both sides of a choice are evaluated, as a kernel may do."""
    values: dict[Expr, Any] = {}
    for expr in subexpressions((root,)):
        values[expr] = _one(expr, point, values)
    return values[root]


def _one(expr: Expr, point: tuple[int, ...], values: dict[Expr, Any]) -> Any:
    match expr:
        case scalar.Axis(number=number, extent=extent):
            assert 0 <= point[number] < extent
            return point[number]
        case scalar.Const(value=value, dtype=dtype):
            return value if dtype == scalar.INDEX else np.array(value, dtype)[()]
        case scalar.Sum(terms=terms, offset=offset):
            return offset + sum(values[term] * factor for term, factor in terms)
        case scalar.FloorDiv(operand=operand, divisor=divisor):
            return values[operand] // divisor
        case scalar.Mod(operand=operand, divisor=divisor):
            return values[operand] % divisor
        case scalar.Clamp(operand=operand, low=low, high=high):
            return min(max(values[operand], low), high)
        case scalar.Compare(relation=relation, left=left, right=right):
            return RELATIONS[relation](values[left], values[right])
        case scalar.Both(left=left, right=right):
            return values[left] and values[right]
        case scalar.Select(predicate=predicate, chosen=chosen, other=other):
            return values[chosen] if values[predicate] else values[other]
        case scalar_values.AsValue(operand=operand, dtype=dtype):
            return np.array(values[operand]).astype(dtype)[()]
        case scalar_values.AsIndex(operand=operand):
            return int(values[operand])
        case Load(buffer=buffer, indices=indices, guard=guard):
            return _load(buffer.data, tuple(values[i] for i in indices), guard, values)
    raise AssertionError(f"no rule here makes {expr}")


def _load(data: np.ndarray, index: tuple[int, ...], guard: Expr | None, values: Any) -> Any:
    if guard is not None and not values[guard]:
        return data.dtype.type(0)
    assert len(index) == data.ndim
    assert all(0 <= i < n for i, n in zip(index, data.shape, strict=True)), (index, data.shape)
    return data[index]


@dataclass(frozen=True)
class Leaf:
    """An operand that stands in memory; `guard` is in effect around all of its reads."""

    buffer: Memory
    guard: Expr | None = None

    @property
    def type(self) -> ArrayType:
        return self.buffer.type

    def __getitem__(self, index: tuple[Expr, ...]) -> Expr:
        return Load.make(self.buffer, index, self.guard)

    def at(self, index: tuple[Expr, ...], guard: Expr | None) -> Expr:
        return self.under(guard)[index]

    def under(self, guard: Expr | None) -> Leaf:
        return replace(self, guard=scalar.both(self.guard, guard))


@dataclass(frozen=True)
class Derived:
    """An operand that is itself the result of an op with an element rule."""

    op: Op
    operands: tuple[Leaf | Derived, ...]
    attrs: dict[str, Any]

    @property
    def type(self) -> ArrayType:
        return self.op.type_rule(*(x.type for x in self.operands), **self.attrs)

    def __getitem__(self, index: tuple[Expr, ...]) -> Expr:
        assert isinstance(self.op.form, Indexed)
        return self.op.form.element(index, self.operands, self.type, **self.attrs)

    def at(self, index: tuple[Expr, ...], guard: Expr | None) -> Expr:
        return self.under(guard)[index]

    def under(self, guard: Expr | None) -> Derived:
        return replace(self, operands=tuple(x.under(guard) for x in self.operands))


def leaves(sample: Sample) -> tuple[Leaf, ...]:
    return tuple(Leaf(Memory(np.asarray(x))) for x in sample.operands)


def axes_of(shape: tuple[int, ...]) -> tuple[Expr, ...]:
    return tuple(Axis.make(number, extent) for number, extent in enumerate(shape))


def points(shape: tuple[int, ...]) -> itertools.product[tuple[int, ...]]:
    return itertools.product(*map(range, shape))


def elements(array: Leaf | Derived) -> np.ndarray:
    """All elements of an operand by its rule. An empty array's rule is never asked."""
    result = np.empty(array.type.shape, array.type.dtype)
    if result.size:
        expr = array[axes_of(result.shape)]
        assert expr.dtype == result.dtype
        for point in points(result.shape):
            result[point] = evaluate(expr, point)
    return result


# every op against its reference


def cases(form: type) -> list[Any]:
    return [
        pytest.param(op, sample, id=f"{op.name}-{number}")
        for op in registry.all_ops()
        if isinstance(op.form, form)
        for number, sample in enumerate(op.samples())
    ]


@pytest.mark.parametrize(("op", "sample"), cases(Indexed))
def test_element_rule_gives_the_reference(op: Op, sample: Sample) -> None:
    got = elements(Derived(op, leaves(sample), dict(sample.attrs)))
    want = op.reference(*sample.operands, **sample.attrs)
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(("op", "sample"), cases(Scatter))
def test_target_rule_gives_the_reference(op: Op, sample: Sample) -> None:
    assert isinstance(op.form, Scatter)
    operands = leaves(sample)
    types = [x.type for x in operands]
    updates = np.asarray(sample.operands[1])
    result = np.array(sample.operands[0])
    written: set[Any] = set()
    repeats = op.form.repeats(sample.attrs, types)
    if updates.size:
        out = op.type_rule(*types, **sample.attrs)
        target, guard = op.form.target(axes_of(updates.shape), operands, out, **sample.attrs)
        for point in points(updates.shape):
            if guard is not None and not evaluate(guard, point):
                continue
            place = tuple(evaluate(i, point) for i in target)
            assert all(0 <= i < n for i, n in zip(place, result.shape, strict=True))
            new, combiner = updates[point], op.form.combiner
            result[place] = new if combiner is None else combiner.ufunc(result[place], new)
            step = point[:repeats], place
            assert step not in written, "two points of one step write one element"
            written.add(step)
    np.testing.assert_array_equal(result, op.reference(*sample.operands, **sample.attrs))


# indices stay affine


def ramp(*shape: int) -> np.ndarray:
    return np.arange(float(np.prod(shape))).reshape(shape)


def reshape(x: Leaf | Derived, *shape: int) -> Derived:
    return Derived(registry.get("reshape"), (x,), {"shape": shape})


def transpose(x: Leaf | Derived, *axes: int) -> Derived:
    return Derived(registry.get("transpose"), (x,), {"axes": axes})


def flip(x: Leaf | Derived) -> Derived:
    shape = x.type.shape
    attrs = {"starts": tuple(n - 1 for n in shape), "steps": (-1,) * len(shape), "sizes": shape}
    return Derived(registry.get("slice"), (x,), attrs)


def indices_of(x: Leaf | Derived) -> tuple[Expr, ...]:
    expr = x[axes_of(x.type.shape)]
    assert isinstance(expr, Load)
    return expr.indices


X = Leaf(Memory(ramp(4, 6)))
FLAT = Leaf(Memory(ramp(24)))

AFFINE = {
    "split": (reshape(FLAT, 2, 3, 4), [({0: 12, 1: 4, 2: 1}, 0)]),
    "split one of two": (reshape(X, 4, 2, 3), [({0: 1}, 0), ({1: 3, 2: 1}, 0)]),
    "ones dropped": (reshape(X, 1, 4, 1, 6), [({1: 1}, 0), ({3: 1}, 0)]),
    "merge and split": (reshape(reshape(FLAT, 2, 3, 4), 24), [({0: 1}, 0)]),
    "merge and split otherwise": (reshape(reshape(FLAT, 4, 6), 3, 8), [({0: 8, 1: 1}, 0)]),
    "three times": (reshape(reshape(reshape(FLAT, 2, 12), 2, 3, 4), 24), [({0: 1}, 0)]),
    "inner merge": (reshape(reshape(FLAT, 2, 3, 4), 2, 12), [({0: 12, 1: 1}, 0)]),
    "split and merge": (reshape(reshape(X, 2, 2, 3, 2), 4, 6), [({0: 1}, 0), ({1: 1}, 0)]),
    "transpose": (transpose(X, 1, 0), [({1: 1}, 0), ({0: 1}, 0)]),
    "flip": (flip(X), [({0: -1}, 3), ({1: -1}, 5)]),
    "flip of a split": (flip(reshape(X, 2, 2, 6)), [({0: -2, 1: -1}, 3), ({2: -1}, 5)]),
    "split of a flip": (reshape(flip(X), 2, 2, 6), [({0: -2, 1: -1}, 3), ({2: -1}, 5)]),
    "flipped back": (flip(flip(X)), [({0: 1}, 0), ({1: 1}, 0)]),
    "transpose of a split": (transpose(reshape(FLAT, 4, 6), 1, 0), [({1: 6, 0: 1}, 0)]),
    "transpose with one": (reshape(transpose(reshape(X, 4, 1, 6), 1, 0, 2), 4, 6),
                           [({0: 1}, 0), ({1: 1}, 0)]),
}  # fmt: skip


@pytest.mark.parametrize("name", AFFINE)
def test_views_have_affine_indices(name: str) -> None:
    x, want = AFFINE[name]
    assert [affine(i) for i in indices_of(x)] == want


def test_only_merged_axes_are_divided() -> None:
    first, second = indices_of(reshape(X, 24))
    assert isinstance(first, scalar.FloorDiv)
    assert isinstance(second, scalar.Mod)


def test_gather_at_iota_is_affine() -> None:
    iota = Derived(registry.get("iota"), (), {"size": 3, "dtype": np.dtype(np.int64)})
    gathered = Derived(registry.get("gather"), (X, iota), {"dims": (1,)})
    assert [affine(i) for i in indices_of(gathered)] == [({1: 1}, 0), ({0: 1}, 0)]


def test_concatenation_folds_where_a_slice_decides() -> None:
    joined = Derived(registry.get("concatenate"), (X, X, X), {"axis": 0})
    attrs = {"starts": (5, 0), "steps": (1, 1), "sizes": (3, 6)}
    part = Derived(registry.get("slice"), (joined,), attrs)
    assert [affine(i) for i in indices_of(part)] == [({0: 1}, 1), ({1: 1}, 0)]


# random chains


@st.composite
def factorings(draw: st.DrawFn, size: int) -> tuple[int, ...]:
    """A shape of `size` elements."""
    shape: list[int] = []
    while size > 1 or (len(shape) < 4 and draw(st.booleans())):
        extent = draw(st.sampled_from([n for n in range(1, size + 1) if size % n == 0]))
        shape.append(extent)
        size //= extent
        if len(shape) == 4:
            shape.append(size)
            break
    return tuple(shape)


@st.composite
def steps(draw: st.DrawFn, type_: ArrayType) -> tuple[str, dict[str, Any]]:
    """An op and attrs that apply to an array of this type."""
    shape, ndim = type_.shape, type_.ndim
    name = draw(st.sampled_from(["reshape", "transpose", "slice", "roll", "pad"]))
    if name == "reshape":
        return name, {"shape": draw(factorings(type_.size))}
    if name == "transpose":
        return name, {"axes": tuple(draw(st.permutations(range(ndim))))}
    if name == "roll":
        shifts = draw(st.lists(st.integers(-9, 9), min_size=ndim, max_size=ndim))
        return name, {"shifts": tuple(shifts), "axes": tuple(range(ndim))}
    if name == "pad":
        widths = st.lists(st.integers(0, 2), min_size=ndim, max_size=ndim).map(tuple)
        grown = type_.size <= 40
        low, high = (draw(widths) if grown else (0,) * ndim for _ in range(2))
        return name, {"low": low, "high": high}
    strided = [draw(spans(extent)) for extent in shape]
    starts, increments, sizes = (tuple(span[k] for span in strided) for k in range(3))
    return name, {"starts": starts, "steps": increments, "sizes": sizes}


@st.composite
def spans(draw: st.DrawFn, extent: int) -> tuple[int, int, int]:
    """Start, step and size of at least one element."""
    start = draw(st.integers(0, extent - 1))
    step = draw(st.sampled_from([-2, -1, 1, 2]))
    room = (extent - 1 - start) // step if step > 0 else start // -step
    return start, step, draw(st.integers(1, room + 1))


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_chains_of_rules_equal_numpy(data: st.DataObject) -> None:
    shape = data.draw(st.lists(st.integers(1, 4), max_size=3).map(tuple))
    want = 1 + ramp(*shape) if shape else np.array(1.0)
    chain: Leaf | Derived = Leaf(Memory(want))
    for _ in range(data.draw(st.integers(1, 5))):
        name, attrs = data.draw(steps(chain.type))
        extra = (np.array(-1.0),) if name == "pad" else ()
        op = registry.get(name)
        chain = Derived(op, (chain, *(Leaf(Memory(x)) for x in extra)), attrs)
        want = op.reference(want, *extra, **attrs)
    np.testing.assert_array_equal(elements(chain), want)
