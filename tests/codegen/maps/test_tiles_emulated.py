"""Maps that go through shared memory give what NumPy gives."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from lowering.codegen import Unit, geometry, unit_source
from lowering.codegen.maps import transpose_tiles
from lowering.codegen.maps.transpose_tiles import find_transpose
from lowering.cuda.compilation.compile import cubin
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.kernel import MapNest
from tests.cases.kernels.by_hand import axes, buffer, call, load, node, plan, store, text_of
from tests.cases.kernels.case import Case, values
from tests.codegen.test_kernels_emulated import assert_case
from tests.emulation.emulator import COMPILER, Emulator
from tracegraph.ir.scalar import both, const, select
from tracegraph.ir.types import ArrayType

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


def sliced(dtype: str, first: int) -> Case:
    """Runs that begin within an argument, all with the same misalignment."""
    x, out = buffer(dtype, 150, 256), buffer(dtype, 230, 150)
    i, j = axes(230, 150)
    nest = MapNest((230, 150), (store(out, (i, j), load(x, j, i + first)),))
    given = values(dtype, 150, 256)
    return Case(node("sliced", nest), {x: given}, {out: given[:, first : first + 230].T})


def batch_of_transposes(dtype: str) -> Case:
    """Matrices of an odd number of elements: the misalignment of runs differs between them."""
    x, out = buffer(dtype, 3, 133, 129), buffer(dtype, 3, 129, 133)
    k, i, j = axes(3, 129, 133)
    nest = MapNest((3, 129, 133), (store(out, (k, i, j), call("negative", load(x, k, j, i))),))
    given = values(dtype, 3, 133, 129)
    return Case(node("batch", nest), {x: given}, {out: -given.transpose(0, 2, 1)})


def of_a_constant(columns: int) -> Case:
    """It begins aligned, and its rows do or do not."""
    x, out = (
        Buffer("const", columns, ArrayType("int8", (131, columns))),
        buffer("int8", columns, 131),
    )
    i, j = axes(columns, 131)
    nest = MapNest((columns, 131), (store(out, (i, j), call("negative", load(x, j, i))),))
    given = values("int8", 131, columns)
    return Case(node("constant", nest), {x: given}, {out: -given.T})


def narrowed_and_added() -> Case:
    """Loads and stores of several sizes, each with an alignment of its own."""
    x, y = buffer("int16", 133, 261), buffer("int8", 133, 261)
    out, total = buffer("int8", 261, 133), buffer("int16", 261, 133)
    i, j = axes(261, 133)
    narrow = call("cast", load(x, j, i), dtype="int8")
    wide = call("cast", load(y, j, i), dtype="int16")
    stores = (
        store(out, (i, j), call("add", narrow, load(y, j, i))),
        store(total, (i, j), call("add", load(x, j, i), wide)),
    )
    given = {b: values(b.type.dtype, 133, 261) // 2 for b in (x, y)}
    expected = {
        out: (given[x].astype(np.int8) + given[y]).T,
        total: (given[x] + given[y].astype(np.int16)).T,
    }
    return Case(node("narrowed", MapNest((261, 133), stores)), given, expected)


def in_place() -> Case:
    """Each element is read before it is written, and by the thread that writes it."""
    x, out = buffer("int16", 131, 259), buffer("int16", 259, 131)
    i, j = axes(259, 131)
    total = call("add", load(x, j, i), load(out, i, j))
    nest = MapNest((259, 131), (store(out, (i, j), total),))
    given = {b: values("int16", *b.type.shape) // 2 for b in (x, out)}
    return Case(node("in_place", nest), given, {out: given[x].T + given[out]})


DTYPES = ("int8", "float16", "float32", "float64", "complex128")
CASES = {
    **{f"{dtype}_{n}x{m}": transpose(dtype, n, m) for dtype in DTYPES for n, m in [(64, 128)]},
    "float32_67x131": transpose("float32", 67, 131),
    "float16_300x17": transpose("float16", 300, 17),
    "float16_259x131": transpose("float16", 259, 131),  # every other row is misaligned
    "float16_261x277": transpose("float16", 261, 277),  # a sector remains beyond the tiles
    "int8_256x129": transpose("int8", 256, 129),
    "int8_133x323": transpose("int8", 133, 323),
    **{f"order_{o}": permutation(o) for o in [(0, 3, 2, 1), (3, 0, 2, 1), (2, 0, 3, 1)]},
    "sum_with_the_transpose": sum_with_the_transpose(),
    "padded_and_reversed": padded_and_reversed(),
    **{f"{dtype}_261x257": transpose(dtype, 261, 257) for dtype in DTYPES},
    **{f"{dtype}_sliced_{n}": sliced(dtype, n) for dtype in ("int8", "float32") for n in (8, 11)},
    **{f"{dtype}_batch": batch_of_transposes(dtype) for dtype in ("int8", "float16", "float64")},
    **{f"constant_of_{columns}": of_a_constant(columns) for columns in (256, 259)},
    "narrowed_and_added": narrowed_and_added(),
    "in_place": in_place(),
}


@pytest.fixture
def tiled_when_small(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MIN_POINTS", "LARGE_POINTS", "LARGEST_POINTS"):
        monkeypatch.setattr(transpose_tiles, name, 1)


@pytest.fixture(scope="module")
def unit() -> Iterator[Unit]:
    with pytest.MonkeyPatch.context() as patch:
        for name in ("MIN_POINTS", "LARGE_POINTS", "LARGEST_POINTS"):
            patch.setattr(transpose_tiles, name, 1)
        yield unit_source(plan(*(case.node for case in CASES.values())))


@pytest.fixture(scope="module")
def emulator(unit: Unit, tmp_path_factory: pytest.TempPathFactory) -> Emulator:
    return Emulator(unit, tmp_path_factory.mktemp("tiles"))


@pytest.mark.parametrize(
    ("shift", "apart"), [(0, 0), (1, 0), (2, 1), (3, 2), (5, 0), (15, 5), (4, 4)]
)
@pytest.mark.parametrize("name", CASES)
def test_map_gives_what_numpy_gives(
    name: str, shift: int, apart: int, unit: Unit, emulator: Emulator
) -> None:
    assert unit.kernels[CASES[name].node].shared_bytes, "the map has no tile"
    assert_case(CASES[name], emulator, shift, apart)


COMPILED = ("int8_64x128", "float16_261x277", "float64_64x128", "narrowed_and_added")
"""Narrow and wide elements, aligned and misaligned ones, and several widths beside each other."""


@pytest.mark.usefixtures("tiled_when_small")
def test_tiles_compile_for_gpus() -> None:
    pytest.importorskip("cuda.core")
    unit = unit_source(plan(*(CASES[name].node for name in COMPILED)))
    assert cubin(unit.source, "sm_90").code


def test_tiles_of_narrow_elements_are_large_and_moved_by_words(unit: Unit) -> None:
    code = unit.kernels[CASES["float16_259x131"].node]
    assert code.shared_bytes == _tile_bytes(128, 16, 2)
    text = text_of(unit, CASES["float16_259x131"].node)
    assert "*reinterpret_cast<const tg_pack<tg_half, 2>*>(p0" in text
    assert "*reinterpret_cast<tg_pack<tg_half, 2>*>(p1" in text


def test_few_blocks_load_whole_misaligned_tiles(unit: Unit) -> None:
    bounds = {
        name: unit.source.split(f"\n{unit.kernels[CASES[name].node].name}(")[0].splitlines()[-1]
        for name in ("float16_64x128", "float16_261x277", "float32_261x257", "float64_261x257")
    }
    assert [text.partition("__launch_bounds__")[2] for text in bounds.values()] == [
        "(256)",
        "(256, 2)",
        "(256, 4)",
        "(256, 4)",
    ]


def test_tiles_are_small_where_large_ones_do_not_fit(unit: Unit) -> None:
    code = unit.kernels[CASES["narrowed_and_added"].node]
    assert code.shared_bytes == _tile_bytes(64, 32, 2) + _tile_bytes(64, 32, 1)


def _tile_bytes(side: int, width: int, size: int) -> int:
    """The shared memory of a tile that is stored by sectors of `width` points, misaligned."""
    nbytes = (side + width) * (side + 4 // size) * size
    return -(-nbytes // 16) * 16


@pytest.mark.usefixtures("tiled_when_small")
def test_few_threads_transpose_tiles_by_elements(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A block has as many threads as the shared memory of its other nests allows."""
    case = CASES["float16_259x131"]
    monkeypatch.setattr(geometry, "MAX_THREADS", 32)
    unit = unit_source(plan(case.node))
    assert unit.kernels[case.node].block == (32, 1, 1)
    assert_case(case, Emulator(unit, tmp_path), shift=1)


def test_tiles_begin_where_runs_begin_a_sector(unit: Unit) -> None:
    """Rows of 128 float32 have the same misalignment, those of 261 do not."""
    aligned, odd = (CASES[f"float32_{shape}"].node for shape in ("64x128", "261x257"))
    assert unit.kernels[aligned].grid == (2 * 3, 1, 1)
    assert unit.kernels[odd].grid == (5 * 5, 1, 1)
    assert "int(tg_u64(p1 + 0) / 4 & 7)" in text_of(unit, aligned)
    assert "int(tg_u64(p1 + 0) / 4 & 7)" not in text_of(unit, odd)


def test_maps_without_a_crossing_have_no_tile() -> None:
    x, row, out = buffer("float32", 512, 512), buffer("float32", 512), buffer("float32", 512, 512)
    i, j = axes(512, 512)

    def of(*stores: object) -> MapNest:
        return MapNest((512, 512), stores)  # type: ignore[arg-type]

    assert find_transpose(of(store(out, (i, j), load(x, j, i)))) is not None
    assert find_transpose(of(store(out, (i, j), load(x, i, j)))) is None
    assert find_transpose(of(store(out, (i, j), load(row, i)))) is None
    assert find_transpose(of(store(out, (j, i), load(x, j, i)))) is None
    assert find_transpose(of(store(x, (i, j), load(x, j, i)))) is None
