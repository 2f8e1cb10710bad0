"""Maps that access memory by vectors give what NumPy gives, whatever the arguments' alignment."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from lowering.codegen import Unit, geometry, unit_source
from lowering.codegen import geometry_records as records
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.kernel import MapNest
from tests.cases.kernels import maps as map_cases  # noqa: F401 - adds its cases
from tests.cases.kernels.by_hand import axes, buffer, call, load, node, plan, store, text_of
from tests.cases.kernels.case import CASES, Case, values
from tests.codegen.test_kernels_emulated import assert_case
from tests.emulation.emulator import COMPILER, Emulator
from tracegraph.ir.scalar import compare, floor_divide, modulo
from tracegraph.ir.scalar_values import as_value

pytestmark = pytest.mark.skipif(COMPILER is None, reason="needs g++")


def negation(dtype: str, size: int) -> Case:
    x, out = buffer(dtype, size), buffer(dtype, size)
    (i,) = axes(size)
    nest = MapNest((size,), (store(out, (i,), call("negative", load(x, i))),))
    given = values(dtype, size)
    return Case(node("negation", nest), {x: given}, {out: -given})


def rows_and_columns() -> Case:
    """The row of a group is the same for its points, the column counts."""
    x, row, column, out = (buffer("float32", *s) for s in ((50, 64), (64,), (50,), (50, 64)))
    i, j = axes(50, 64)
    total = call("add", call("multiply", load(x, i, j), load(column, i)), load(row, j))
    nest = MapNest((50, 64), (store(out, (i, j), total),))
    given = {b: values("float32", *b.type.shape, seed=n) for n, b in enumerate((x, row, column))}
    expected = given[x] * given[column][:, None] + given[row]
    return Case(node("rows", nest), given, {out: expected})


def slices() -> Case:
    """One that begins at a multiple of the width, and one that does not."""
    x, out = buffer("float32", 3000), buffer("float32", 2500)
    (i,) = axes(2500)
    nest = MapNest((2500,), (store(out, (i,), call("add", load(x, i + 8), load(x, i + 3))),))
    given = values("float32", 3000)
    return Case(node("slices", nest), {x: given}, {out: given[8:2508] + given[3:2503]})


def argument_beside_own_memory() -> Case:
    """Groups begin where the argument that is stored to is aligned, and the constant is not."""
    x, out = buffer("float32", 5000), buffer("float32", 5000)
    offset = Buffer("const", 0, x.type)
    (i,) = axes(5000)
    nest = MapNest((5000,), (store(out, (i,), call("add", load(x, i), load(offset, i))),))
    given = {b: values("float32", 5000, seed=n) for n, b in enumerate((x, offset))}
    return Case(node("beside", nest), given, {out: given[x] + given[offset]})


def several_dtypes_and_a_guard() -> Case:
    small, large = buffer("int8", 1001), buffer("float64", 1001)
    out, odd = buffer("float64", 1001), buffer("int8", 1001)
    (i,) = axes(1001)
    wide = call("cast", load(small, i), dtype="float64")
    guard = compare("==", modulo(i, 2), 1)
    stores = (
        store(out, (i,), call("add", wide, load(large, i))),
        store(odd, (i,), load(small, i), guard),
    )
    given = {small: values("int8", 1001), large: values("float64", 1001), odd: np.zeros(1001)}
    expected = given[small].astype(np.float64) + given[large]
    odds = np.where(np.arange(1001) % 2 == 1, given[small], 0)
    return Case(node("dtypes", MapNest((1001,), stores)), given, {out: expected, odd: odds})


def several_results(dtype: str, size: int) -> Case:
    """Only one of them is aligned where groups begin."""
    x, negative, twice = (buffer(dtype, size) for _ in range(3))
    (i,) = axes(size)
    element = load(x, i)
    stores = (
        store(negative, (i,), call("negative", element)),
        store(twice, (i,), call("add", element, element)),
    )
    given = values(dtype, size) // 2 if dtype == "int8" else values(dtype, size)
    expected = {negative: -given, twice: given + given}
    return Case(node("several", MapNest((size,), stores)), {x: given}, expected)


def exchange_in_place() -> Case:
    x, y = buffer("float32", 900), buffer("float32", 900)
    (i,) = axes(900)
    nest = MapNest((900,), (store(x, (i,), load(y, i)), store(y, (i,), load(x, i))))
    given = {x: values("float32", 900), y: values("float32", 900, seed=1)}
    return Case(node("exchange", nest), given, {x: given[y], y: given[x]})


def quotients() -> Case:
    out, at = buffer("int32", 40, 24), buffer("int32", 40)
    i, j = axes(40, 24)
    number = floor_divide(i * 24 + j, 8) * 4 + modulo(i * 24 + j, 16)
    value = call("add", as_value(number, np.dtype(np.int32)), load(at, i))
    nest = MapNest((40, 24), (store(out, (i, j), value),))
    flat = np.arange(40 * 24).reshape(40, 24)
    given = values("int32", 40) // 2
    expected = flat // 8 * 4 + flat % 16 + given[:, None]
    return Case(node("quotients", nest), {at: given}, {out: expected.astype(np.int32)})


DTYPES = ("int8", "float16", "float32", "float64", "complex64", "complex128")
OWN = {
    **{f"{dtype}_{size}": negation(dtype, size) for dtype in DTYPES for size in (64, 4096, 5003)},
    **{f"{dtype}_several": several_results(dtype, 9003) for dtype in DTYPES},
    **{
        make.__name__: make()
        for make in (
            rows_and_columns,
            slices,
            argument_beside_own_memory,
            several_dtypes_and_a_guard,
            exchange_in_place,
            quotients,
        )
    },
}
MAPS = {
    name: case
    for name, case in CASES.items()
    if all(isinstance(nest, MapNest) for nest in case.node.kernel.nests)
}
ALL = {**OWN, **MAPS}


@pytest.fixture(scope="module", params=[1, 2])
def unit(request: pytest.FixtureRequest) -> Iterator[Unit]:
    """Threads have as many vectors each, however small the map is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(records, "MANY_THREADS", 2)
        patch.setattr(geometry, "VECTORS_PER_THREAD", request.param)
        yield unit_source(plan(*(case.node for case in ALL.values())))


@pytest.fixture(scope="module")
def emulator(unit: Unit, tmp_path_factory: pytest.TempPathFactory) -> Emulator:
    return Emulator(unit, tmp_path_factory.mktemp("vectors"))


@pytest.mark.parametrize(
    ("shift", "apart"), [(0, 0), (1, 0), (3, 1), (15, 14), (7, 3), (4, 8), (2, 5)]
)
@pytest.mark.parametrize("name", ALL)
def test_map_gives_what_numpy_gives(name: str, shift: int, apart: int, emulator: Emulator) -> None:
    assert_case(ALL[name], emulator, shift, apart)


def vector_accesses(unit: Unit, name: str) -> int:
    text = text_of(unit, ALL[name].node)
    return sum(text.count(access) for access in ("reinterpret_cast", "tg_load<", "tg_store("))


def test_contiguous_accesses_are_vectors_and_others_are_not(unit: Unit) -> None:
    assert vector_accesses(unit, "float32_4096") == 2
    assert vector_accesses(unit, "complex128_4096") == 0
    assert vector_accesses(unit, "rows_and_columns") == 3
    assert vector_accesses(unit, "slices") == 2
    assert vector_accesses(unit, "reversed_slice_of_three_axes") == 1


def test_only_arguments_are_tested_for_alignment(unit: Unit) -> None:
    assert "& 15) == 0" in text_of(unit, ALL["float32_4096"].node)
    x, out = (Buffer(space, 0, buffer("float32", 1 << 21).type) for space in ("const", "scratch"))
    (i,) = axes(1 << 21)
    inner = node("inner", MapNest((1 << 21,), (store(out, (i,), load(x, i)),)))
    source = unit_source(plan(inner, offsets={out: 0})).source
    assert "reinterpret_cast<const tg_pack" in source
    assert ") == 0" not in source.split("tg_inner_")[1]
    assert "else" not in source.split("tg_inner_")[1]


def test_the_value_of_a_group_is_computed_once(unit: Unit) -> None:
    text = text_of(unit, ALL["rows_and_columns"].node)
    assert text.index("p1[") < text.index("int item")
