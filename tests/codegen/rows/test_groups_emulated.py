"""Rows and scans accessed by vectors give what NumPy gives, whatever the arguments' alignment."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from lowering.codegen import Unit, unit_source
from lowering.codegen import geometry_records as records
from lowering.cuda.compilation.compile import cubin
from lowering.plan.nests.kernel import Accumulator, Pass, ReduceNest, RowNest, ScanNest
from tests.cases.kernels import folds as fold_cases  # noqa: F401 - adds its cases
from tests.cases.kernels import rows as row_cases  # noqa: F401 - adds its cases
from tests.cases.kernels.by_hand import axes, buffer, call, load, node, plan, store, text_of
from tests.cases.kernels.case import CASES, Case, values
from tests.cases.kernels.folds import accumulated, reduction
from tests.cases.kernels.rows import TOLERANCE, softmax
from tests.codegen.test_kernels_emulated import assert_case, memory_of
from tests.emulation.emulator import COMPILER, Emulator
from tracegraph.ir.combiners import ADD, MAXIMUM
from tracegraph.ir.scalar_values import Accumulated

pytestmark = pytest.mark.skipif(COMPILER is None, reason="needs g++")


def total(dtype: str, *shape: int) -> Case:
    """The sum of all elements."""
    x, out = buffer(dtype, *shape), buffer(dtype)
    given = values(dtype, *shape)
    given = given if given.dtype.kind in "iu" else np.abs(given) / 8
    wide = given.astype(np.float64) if given.dtype.kind == "f" else given
    expected = wide.sum(dtype=wide.dtype)
    return Case(node("total", reduction(x, out, (), ADD)), {x: given}, {out: expected}, 1e-3)


def wide_total(dtype: str, wide: str, size: int) -> Case:
    """The sum of squares, most of them the largest there are, that are cast before."""
    x, out = buffer(dtype, size), buffer(wide)
    (i,) = axes(size)
    a = load(x, i)
    square = a if dtype == "bool" else call("multiply", a, a)
    element = call("cast", square, dtype=wide)
    loop = Accumulator(ADD, element)
    total = store(out, (), Accumulated.make(0, np.dtype(wide)))
    given = values(dtype, size)
    given[size // 4 :] = True if dtype == "bool" else int(np.sqrt(np.iinfo(dtype).max))
    squares = given if dtype == "bool" else given * given
    nest = ReduceNest((), (size,), (loop,), (total,))
    return Case(node("wide", nest), {x: given}, {out: squares.sum(dtype=wide)})


def largest_of_rows(dtype: str, rows: int, columns: int) -> Case:
    x, out = buffer(dtype, rows, columns), buffer(dtype, rows)
    given = values(dtype, rows, columns)
    nest = reduction(x, out, (0,), MAXIMUM)
    return Case(node("largest", nest), {x: given}, {out: given.max(1)})


def column_sums(dtype: str, *shape: int) -> Case:
    """The sums over the axis before the last."""
    x, out = buffer(dtype, *shape), buffer(dtype, *shape[:-2], shape[-1])
    given = values(dtype, *shape)
    wide = given.astype(np.float64 if given.dtype.kind == "f" else given.dtype)
    kept = tuple(range(len(shape) - 2)), len(shape) - 1
    nest = reduction(x, out, (*kept[0], kept[1]), ADD)
    expected = wide.sum(-2, dtype=wide.dtype)
    return Case(node("columns", nest), {x: given}, {out: expected}, 1e-3)


def softmax_of_rows(dtype: str, rows: int, columns: int) -> Case:
    x, out = buffer(dtype, rows, columns), buffer(dtype, rows, columns)
    given = values(dtype, rows, columns)
    wide = given.astype(np.float64)
    powers = np.exp(wide - wide.max(1, keepdims=True))
    expected = powers / powers.sum(1, keepdims=True)
    return Case(node("softmax", softmax(x, out, 1)), {x: given}, {out: expected}, TOLERANCE[dtype])


WIDE = {
    "bool": ("int64", "int16"),
    "int8": ("int64", "uint64", "int16"),
    "uint8": ("uint64", "uint32"),
    "int16": ("int64", "int32"),
    "uint16": ("uint64",),
}
"""What integers are cast to before they are summed."""

SIZES = {"bool": 9003, "int8": 9003, "uint8": 9003, "int16": 70_003, "uint16": 70_003}
"""Elements of the sums: those of 16 bits exceed 32 bits."""


def centred_rows(dtype: str, rows: int, columns: int) -> Case:
    """Rows less their largest element, in place."""
    x = buffer(dtype, rows, columns)
    i, j = axes(rows, columns)
    less = call("subtract", load(x, i, j), accumulated(0, x.type.dtype))
    passes = (Pass((Accumulator(MAXIMUM, load(x, i, j)),), ()), Pass((), (store(x, (i, j), less),)))
    given = values(dtype, rows, columns) // 2
    nest = RowNest((rows,), (columns,), passes, ())
    return Case(node("centred", nest), {x: given}, {x: given - given.max(1, keepdims=True)})


OWN = {
    **{f"total_{d}_{w}": wide_total(d, w, SIZES[d]) for d, wides in WIDE.items() for w in wides},
    **{f"total_{d}_{n}": total(d, n) for d in ("int8", "float16") for n in (64, 70_003, 131_072)},
    **{
        f"largest_{d}_{n}x{m}": largest_of_rows(d, n, m)
        for d in ("int8", "int16", "float16")
        for n, m in ((3, 48), (5, 1000), (2, 100), (3, 33), (1, 5001))
    },
    **{
        f"softmax_{d}_{n}x{m}": softmax_of_rows(d, n, m)
        for d in ("float16", "bfloat16")
        for n, m in ((9, 64), (3, 1000), (2, 4096), (1, 16_384), (2, 33_000), (2, 1002), (2, 501))
    },
    **{
        f"softmax_float16_{n}x{m}": softmax_of_rows("float16", n, m)
        for n, m in ((70, 8), (19, 16), (9, 24), (3, 132), (5, 260), (2, 32_768))
    },
    **{
        f"centred_{d}_{n}x{m}": centred_rows(d, n, m)
        for d in ("int8", "int16")
        for n, m in (
            (70, 16),
            (5, 72),
            (3, 1000),
            (2, 4096),
            (2, 65_536),
            (1, 70_000),
            (1, 500_000),
        )
    },
    **{f"softmax_{d}_long": softmax_of_rows(d, 1, 300_000) for d in ("float16", "float32")},
    **{f"softmax_float64_{n}": softmax_of_rows("float64", 3, n) for n in (520, 3000, 4096, 5001)},
}


def running_sums(dtype: str, *shape: int) -> Case:
    """The running sums along the last axis."""
    x, out = buffer(dtype, *shape), buffer(dtype, *shape)
    index = axes(*shape)
    given = values(dtype, *shape)
    given = given if given.dtype.kind == "i" else np.rint(given * 8)  # sums are exact
    nest = ScanNest(shape, len(shape) - 1, ADD, store(out, index, load(x, *index)))
    expected = given.cumsum(-1, dtype=given.dtype)
    return Case(node("running", nest), {x: given}, {out: expected})


OWN |= {
    f"running_{d}_{'x'.join(map(str, shape))}": running_sums(d, *shape)
    for d in ("int8", "float32", "float64")
    for shape in ((9001,), (3, 2048), (2, 3001))
}
OWN |= {
    f"columns_{d}_{'x'.join(map(str, shape))}": column_sums(d, *shape)
    for d in ("int8", "float16")
    for shape in ((50, 256), (3000, 128), (5, 7, 640), (40, 129), (60, 130))
}
ROWS = {
    name: case
    for name, case in CASES.items()
    if all(isinstance(nest, (ReduceNest, RowNest, ScanNest)) for nest in case.node.kernel.nests)
}
ALL = {**OWN, **ROWS}


@pytest.fixture(scope="module")
def unit() -> Iterator[Unit]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(records, "LARGE_ROWS", 2)
        yield unit_source(plan(*(case.node for case in ALL.values())))


@pytest.fixture(scope="module")
def emulator(unit: Unit, tmp_path_factory: pytest.TempPathFactory) -> Emulator:
    return Emulator(unit, tmp_path_factory.mktemp("groups"))


def alignments(name: str) -> list[tuple[int, int]]:
    """The shifts of arguments that a case runs with: all if it is quick and of this file."""
    if max(array.size for array in ALL[name].given.values()) > 20_000:
        return [(3, 1)] if name in ROWS else [(0, 0), (3, 1)]
    return [(0, 0), (3, 1)] if name in ROWS else [(0, 0), (1, 0), (3, 1), (6, 15)]


@pytest.mark.parametrize(
    ("name", "shift", "apart"), [(name, *pair) for name in ALL for pair in alignments(name)]
)
def test_rows_give_what_numpy_gives(name: str, shift: int, apart: int, emulator: Emulator) -> None:
    assert_case(ALL[name], emulator, shift, apart)


@pytest.mark.parametrize(
    ("name", "width"),
    [
        ("total_int8_70003", 16),
        ("total_float16_70003", 8),
        ("softmax_float16_3x1000", 8),
        ("softmax_float16_2x1002", 2),
        ("softmax_float16_2x33000", 8),
        ("running_int8_9001", 16),
        ("running_float32_3x2048", 4),
    ],
)
def test_narrow_elements_are_loaded_by_vectors(name: str, width: int, unit: Unit) -> None:
    text = text_of(unit, ALL[name].node)
    assert f"tg_load<{width}>(p0" in text or f"= tg_elements<{width}, " in text
    assert text.count("p0[") <= (0 if name.startswith("softmax") else 2), "but what is left over"


def test_narrow_integers_are_summed_in_32_bits(unit: Unit) -> None:
    for name in ("total_bool_int64", "total_int8_int64", "total_uint16_uint64", "total_int8_70003"):
        text = text_of(unit, ALL[name].node)
        for step in text.split("++item) {")[1:]:
            assert "total0" not in step.split("}")[0]


@pytest.mark.parametrize(
    ("name", "together"),
    [
        ("columns_int8_50x256", 8),
        ("columns_float16_5x7x640", 8),
        ("columns_float16_3000x128", 4),
        ("columns_float16_60x130", 2),
    ],
)
def test_narrow_columns_are_loaded_together(name: str, together: int, unit: Unit) -> None:
    text = text_of(unit, ALL[name].node)
    assert f"tg_load<{together}>(p0" in text
    assert "p0[" not in text


@pytest.mark.parametrize("name", ["total_float16_70003", "softmax_float16_3x1000"])
def test_results_do_not_depend_on_alignment(name: str, emulator: Emulator) -> None:
    case = ALL[name]
    here = emulator.run(case.node, memory_of(case))
    for shift in range(1, 8):
        there = emulator.run(case.node, memory_of(case, shift), backwards=shift % 2 == 1)
        for place in case.expected:
            assert here[place].tobytes() == there[place].tobytes()


@pytest.mark.parametrize("name", ["softmax_float16_3x1000", "centred_int8_2x65536"])
def test_neighbouring_lanes_store_together(name: str, unit: Unit) -> None:
    text = text_of(unit, ALL[name].node)
    assert "tg_store_together<32>(" in text
    assert "tg_store(" not in text


def test_lanes_that_need_not_begin_a_warp_store_alone(unit: Unit) -> None:
    """After a loop over several groups at a time, some lanes have one left, and others none."""
    text = text_of(unit, ALL["centred_int8_1x500000"].node)
    assert "tg_store_together<" not in text
    assert "tg_store(" in text


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_vectors_compile_for_gpus(arch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("total_float16_70003", "columns_int8_50x256", "running_int8_9001")
    long = ("softmax_bfloat16_3x1000", "softmax_float16_2x33000")
    monkeypatch.setattr(records, "LARGE_ROWS", 2)
    assert cubin(unit_source(plan(*(ALL[n].node for n in (*names, *long)))).source, arch).code


def test_few_blocks_keep_wide_rows(unit: Unit) -> None:
    """Left alone, a compiler would spill registers for one block more."""
    heads = {}
    for name in ("softmax_float64_520", "softmax_float64_3000", "softmax_float64_5001"):
        code = unit.kernels[OWN[name].node]
        (head,) = unit.source.split(f"\n{code.name}(")[0].splitlines()[-1:]
        heads[name] = head.removeprefix('extern "C" __global__ void '), code.block[0]
    assert heads == {
        "softmax_float64_520": ("__launch_bounds__(256, 3)", 256),
        "softmax_float64_3000": ("__launch_bounds__(256, 3)", 256),
        "softmax_float64_5001": ("TG_CLUSTER(2) __launch_bounds__(256, 5)", 256),
    }
