"""Cases of MapNest, and of every kind of scalar expression."""

from __future__ import annotations

import numpy as np

from lowering.plan.nests.kernel import MapNest, SetCondition
from tests.cases.kernels.by_hand import axes, buffer, call, load, node, store
from tests.cases.kernels.case import Case, case, kernel_case, values
from tracegraph.dtypes import SHORT_NAMES
from tracegraph.ir.scalar import BOOL, both, clamp, compare, const, floor_divide, modulo, select
from tracegraph.ir.scalar_values import as_index, as_value


@case
def transposed_with_broadcast() -> Case:
    x, row, out = buffer("float32", 5, 7), buffer("float32", 5), buffer("float32", 7, 5)
    i, j = axes(7, 5)
    nest = MapNest((7, 5), (store(out, (i, j), call("add", load(x, j, i), load(row, j))),))
    given = {x: values("float32", 5, 7), row: values("float32", 5, seed=1)}
    return Case(node("transposed", nest), given, {out: given[x].T + given[row]})


@case
def reversed_slice_of_three_axes() -> Case:
    x, out = buffer("int32", 4, 9, 5), buffer("int32", 4, 3, 5)
    i, j, k = axes(4, 3, 5)
    nest = MapNest((4, 3, 5), (store(out, (i, j, k), load(x, i, -j * 4 + 8, -k + 4)),))
    given = values("int32", 4, 9, 5)
    return Case(node("reversed", nest), {x: given}, {out: given[:, ::-4, ::-1]})


@case
def padded_by_guarded_loads() -> Case:
    x, out = buffer("float64", 3, 4), buffer("float64", 6, 9)
    i, j = axes(6, 9)
    inside = both(both(i - 1 >= 0, i - 1 < 3), both(j - 2 >= 0, j - 2 < 4))
    element = load(x, i - 1, j - 2, guard=inside)
    padded = select(inside, element, const(7.5, np.dtype(np.float64)))
    given = values("float64", 3, 4)
    expected = np.pad(given, ((1, 2), (2, 3)), constant_values=7.5)
    return Case(
        node("padded", MapNest((6, 9), (store(out, (i, j), padded),))), {x: given}, {out: expected}
    )


@case
def guarded_store_into_every_other_element() -> Case:
    x, out = buffer("int16", 11), buffer("int16", 11)
    (i,) = axes(11)
    guard = compare("==", modulo(i, 2), 0)
    nest = MapNest((11,), (store(out, (i,), load(x, i), guard),))
    given, before = values("int16", 11), np.arange(11, dtype=np.int16)
    expected = np.where(np.arange(11) % 2 == 0, given, before)
    return Case(node("guarded", nest), {x: given, out: before}, {out: expected})


@case
def two_buffers_exchanged_in_place() -> Case:
    x, y = buffer("float32", 300), buffer("float32", 300)
    (i,) = axes(300)
    nest = MapNest((300,), (store(x, (i,), load(y, i)), store(y, (i,), load(x, i))))
    given = {x: values("float32", 300), y: values("float32", 300, seed=1)}
    return Case(node("swap", nest), given, {x: given[y], y: given[x]})


@case
def several_points_a_thread() -> Case:
    size = (1 << 20) + 3
    x, out = buffer("int8", size), buffer("int8", size)
    (i,) = axes(size)
    nest = MapNest((size,), (store(out, (i,), call("negative", load(x, -i + size - 1))),))
    given = values("int8", size)
    return Case(node("many", nest), {x: given}, {out: -given[::-1]})


@case
def gather_wraps_then_clamps_indices_of_64_bits() -> Case:
    x, at, out = buffer("float32", 6, 2), buffer("int64", 7), buffer("float32", 7, 2)
    i, j = axes(7, 2)
    raw = as_index(load(at, i))
    row = clamp(select(raw < 0, raw + 6, raw), 0, 5)
    nest = MapNest((7, 2), (store(out, (i, j), load(x, row, j)),))
    given = {
        x: values("float32", 6, 2),
        at: np.array([0, 5, -1, -6, -7, 2**40, -(2**62)], np.int64),
    }
    return Case(node("gather", nest), given, {out: given[x][[0, 5, 5, 0, 0, 5, 0]]})


@case
def floor_and_modulo_of_negative_indices() -> Case:
    quotient, rest = buffer("int64", 40), buffer("int64", 40)
    far, wide = buffer("int64", 40), buffer("int64", 40)
    (i,) = axes(40)
    shifted, large = i - 17, i * 2**33 - 2**36
    i64 = np.dtype(np.int64)
    nest = MapNest(
        (40,),
        (
            store(quotient, (i,), as_value(floor_divide(shifted, 6), i64)),
            store(rest, (i,), as_value(modulo(shifted, 6), i64)),
            store(far, (i,), as_value(floor_divide(large, 10**10), i64)),
            store(wide, (i,), as_value(modulo(large, 2**32 + 1), i64)),
        ),
    )
    n = np.arange(40, dtype=np.int64)
    big = n * 2**33 - 2**36
    expected = {
        quotient: (n - 17) // 6,
        rest: (n - 17) % 6,
        far: big // 10**10,
        wide: big % (2**32 + 1),
    }
    return Case(node("floor", nest), {}, expected)


@case
def partial_sums_of_indices_beyond_32_bits() -> Case:
    out = buffer("int64", 30)
    (i,) = axes(30)
    raw = clamp(as_index(load(at := buffer("int64", 30), i)), 0, 2**31 - 2)
    index = raw + 2**31 - raw + i + modulo(raw * 3 - 2**33, 1000)
    nest = MapNest((30,), (store(out, (i,), as_value(index, np.dtype(np.int64))),))
    given = np.linspace(-5, 2**32, 30).astype(np.int64)
    clamped = np.clip(given, 0, 2**31 - 2)
    expected = 2**31 + np.arange(30) + (clamped * 3 - 2**33) % 1000
    return Case(node("wide", nest), {at: given}, {out: expected})


@case
def conditions_from_a_bool_and_an_integer() -> Case:
    x, out = buffer("int64"), buffer("int64")
    more = call("less", load(x), const(10), dtype=bool)
    conditions = (SetCondition(3, more), SetCondition(9, load(x)))
    after = store(out, (), call("add", load(x), const(1)))
    nest = MapNest((), (after,), conditions)
    return Case(node("step", nest), {x: 6, out: 0}, {out: np.array(7)}, conditions={3: 1, 9: 6})


@case
def independent_nests_of_different_sizes() -> Case:
    x, y, out = buffer("float32", 600), buffer("int32"), buffer("int32", 0)
    (i,) = axes(600)
    j = axes(0)
    nests = (
        MapNest((600,), (store(x, (i,), call("square", load(x, i))),)),
        MapNest((0,), (store(out, j, load(y)),)),
        MapNest((), (store(y, (), call("negative", load(y))),)),
    )
    given = values("float32", 600)
    return Case(
        node("three", *nests),
        {x: given, y: 4, out: np.zeros(0)},
        {x: given * given, y: np.array(-4)},
    )


def _every_dtype() -> None:
    (i,) = axes(70)
    for dtype, name in SHORT_NAMES.items():
        x, out, counted = (buffer(dtype, 70) for _ in range(3))
        doubled = call("add", load(x, i), call("multiply", load(x, i), load(x, i)))
        nest = MapNest((70,), (store(out, (i,), doubled), store(counted, (i,), as_value(i, dtype))))
        given = values(dtype, 70)
        exact = dtype.kind != "c"
        expected = {out: given + given * given, counted: np.arange(70).astype(dtype)}
        kernel_case(f"arithmetic_{name}", (nest,), {x: given}, expected, 0.0 if exact else 1e-6)


_CONSTANTS = {
    "bool": [True, False],
    "int8": [-128, 127, -1],
    "uint16": [0, 65535],
    "int32": [-(2**31), 2**31 - 1, -7],
    "uint32": [2**32 - 1],
    "int64": [-(2**63), 2**63 - 1, -3],
    "uint64": [2**64 - 1, 0],
    "float16": [-0.0, 65504.0, float("nan"), float("-inf"), 6e-8],
    "float32": [0.1, -0.0, 1e-45, float("inf"), float("nan"), -3.4e38],
    "float64": [0.1, -0.0, 5e-324, float("-inf"), float("nan"), 1.7e308],
    "complex64": [complex(-0.0, 1.5), complex(float("inf"), -0.1)],
    "complex128": [complex(0.1, -0.0), complex(float("-inf"), float("inf"))],
}


def _constants() -> None:
    for name, numbers in _CONSTANTS.items():
        dtype = np.dtype(name)
        stores, expected = [], {}
        for number in numbers:
            out = buffer(dtype)
            stores.append(store(out, (), const(number, dtype)))
            expected[out] = np.array(number, dtype)
        kernel_case(f"constants_{name}", (MapNest((), tuple(stores)),), {}, expected)


def _casts() -> None:
    (i,) = axes(9)
    x = buffer("float64", 9)
    given = np.array([0.0, -1.5, 3.7, 100.25, 1e-3, -7.0, 65519.9, 2.0**-25, 0.1])
    stores, expected = [], {}
    for dtype in map(np.dtype, ("float16", "float32", "complex64", "int32", "bool")):
        out = buffer(dtype, 9)
        stores.append(store(out, (i,), call("cast", load(x, i), dtype=dtype)))
        expected[out] = given.astype(dtype)
    kernel_case("casts", (MapNest((9,), tuple(stores)),), {x: given}, expected)
    assert BOOL in {e.dtype for e in expected.values()}


_every_dtype()
_constants()
_casts()
