"""Maps that turn tiles in shared memory give what NumPy gives."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from cases import Case, values
from emulator import COMPILER, Emulator
from kernels import axes, buffer, call, load, node, plan, store
from test_kernels_emulated import assert_case

from lowering.codegen import Unit, crossings, unit_source
from lowering.codegen.crossings import crossing
from lowering.kernel import MapNest
from tracegraph.scalar import both, const, select

pytestmark = pytest.mark.skipif(COMPILER is None, reason="needs g++")


def transpose(dtype: str, rows: int, columns: int) -> Case:
    x, out = buffer(dtype, columns, rows), buffer(dtype, rows, columns)
    i, j = axes(rows, columns)
    nest = MapNest((rows, columns), (store(out, (i, j), call("negative", load(x, j, i))),))
    given = values(dtype, columns, rows)
    return Case(node("transpose", nest), {x: given}, {out: -given.T})


def permutation(order: tuple[int, ...]) -> Case:
    """Any pair of axes, the others being independent."""
    shape = (3, 40, 5, 33)
    x = buffer("float32", *shape)
    out = buffer("float32", *(shape[a] for a in order))
    index = axes(*out.type.shape)
    element = load(x, *(index[order.index(a)] for a in range(4)))
    nest = MapNest(out.type.shape, (store(out, index, element),))
    given = values("float32", *shape)
    return Case(node("permutation", nest), {x: given}, {out: given.transpose(order)})


def sum_with_the_transpose() -> Case:
    x, y, row, out = (buffer("float32", *s) for s in ((70, 70), (70, 70), (70,), (70, 70)))
    i, j = axes(70, 70)
    total = call("add", call("add", load(x, i, j), load(x, j, i)), load(y, j, i))
    shifted = call("multiply", total, load(row, j))
    nest = MapNest((70, 70), (store(out, (i, j), shifted),))
    given = {b: values("float32", *b.type.shape, seed=n) for n, b in enumerate((x, y, row))}
    expected = (given[x] + given[x].T + given[y].T) * given[row]
    return Case(node("symmetric", nest), given, {out: expected})


def padded_and_reversed() -> Case:
    x, out = buffer("int32", 50, 60), buffer("int32", 66, 51)
    i, j = axes(66, 51)
    inside = both(both(i - 3 >= 0, i - 3 < 60), j < 50)
    element = load(x, -j + 49, i - 3, guard=inside)
    nest = MapNest(
        (66, 51), (store(out, (i, j), select(inside, element, const(7, np.dtype(np.int32)))),)
    )
    given = values("int32", 50, 60)
    expected = np.pad(given[::-1].T, ((3, 3), (0, 1)), constant_values=7)
    return Case(node("padded", nest), {x: given}, {out: expected})


DTYPES = ("int8", "float16", "float32", "float64", "complex128")
CASES = {
    **{f"{dtype}_{n}x{m}": transpose(dtype, n, m) for dtype in DTYPES for n, m in [(64, 128)]},
    "float32_67x131": transpose("float32", 67, 131),
    "float16_300x17": transpose("float16", 300, 17),
    "float16_259x131": transpose("float16", 259, 131),  # rows begin off alignment, by turns
    "int8_256x129": transpose("int8", 256, 129),
    **{f"order_{o}": permutation(o) for o in [(0, 3, 2, 1), (3, 0, 2, 1), (2, 0, 3, 1)]},
    "sum_with_the_transpose": sum_with_the_transpose(),
    "padded_and_reversed": padded_and_reversed(),
}


@pytest.fixture(scope="module")
def unit() -> Iterator[Unit]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(crossings, "LEAST_POINTS", 1)
        patch.setattr(crossings, "LARGE_POINTS", 1)
        yield unit_source(plan(*(case.node for case in CASES.values())))


@pytest.fixture(scope="module")
def emulator(unit: Unit, tmp_path_factory: pytest.TempPathFactory) -> Emulator:
    return Emulator(unit, tmp_path_factory.mktemp("tiles"))


@pytest.mark.parametrize(("shift", "apart"), [(0, 0), (1, 0), (2, 1)])
@pytest.mark.parametrize("name", CASES)
def test_map_gives_what_numpy_gives(
    name: str, shift: int, apart: int, unit: Unit, emulator: Emulator
) -> None:
    assert unit.kernels[CASES[name].node].shared_bytes, "the map has no tile"
    assert_case(CASES[name], emulator, shift, apart)


def test_tiles_of_narrow_elements_are_large_and_moved_by_words(unit: Unit) -> None:
    code = unit.kernels[CASES["float16_259x131"].node]
    assert code.shared_bytes == 128 * (128 + 2) * 2
    text = unit.source.split(f"\n{code.name}(")[1].split("\n}\n")[0]
    assert "tg_load<2>(" in text
    assert "tg_store(" in text


def test_maps_without_a_crossing_have_no_tile() -> None:
    x, row, out = buffer("float32", 512, 512), buffer("float32", 512), buffer("float32", 512, 512)
    i, j = axes(512, 512)

    def of(*stores: object) -> MapNest:
        return MapNest((512, 512), stores)  # type: ignore[arg-type]

    assert crossing(of(store(out, (i, j), load(x, j, i)))) is not None
    assert crossing(of(store(out, (i, j), load(x, i, j)))) is None
    assert crossing(of(store(out, (i, j), load(row, i)))) is None
    assert crossing(of(store(out, (j, i), load(x, j, i)))) is None
    assert crossing(of(store(x, (i, j), load(x, j, i)))) is None
