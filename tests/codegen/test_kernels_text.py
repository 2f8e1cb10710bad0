"""The text of generated kernels, and how they are launched."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracegraph
from lowering.codegen import ConditionHandle, KernelCode, WorkspaceAddress, unit_source
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.kernel import (
    MapNest,
    Nest,
    Pass,
    ReduceNest,
    RowNest,
    ScanNest,
    ScatterNest,
    SetCondition,
    Store,
    space_index,
)
from lowering.plan.nodes import KernelNode
from tests.cases.kernels.by_hand import axes, buffer, call, load, node, plan, store
from tests.cases.kernels.folds import reduction
from tests.cases.kernels.rows import softmax
from tracegraph.ir.combiners import ADD
from tracegraph.ir.scalar import const
from tracegraph.ir.scalar_values import AsIndex, Load
from tracegraph.ir.types import ArrayType


def functions(*nodes: KernelNode, offsets: object = None) -> str:
    """The text after the preamble."""
    source = unit_source(plan(*nodes, offsets=offsets)).source
    text = source[source.index('extern "C" __global__') :]
    return re.sub(r"(tg_\w+)_[0-9a-f]{10}\(", r"\1(", text)  # a digest of the text


def negation(size: int, dtype: str = "float32") -> KernelNode:
    x, out = buffer(dtype, size), buffer(dtype, size)
    (i,) = axes(size)
    return node("negative", MapNest((size,), (store(out, (i,), call("negative", load(x, i))),)))


MAP = """\
extern "C" __global__ void __launch_bounds__(64)
tg_axpy(const float* __restrict__ p0, const float* __restrict__ p1, float* p2) {
  tg_wait_for_primaries();
  tg_launch_dependents();
  const int thread = int(threadIdx.x);
  const int block = int(blockIdx.x);
  const int point = block * 64 + thread;
  if (point < 40) {
    const float v0 = p0[point];
    const float v1 = (0x1.8000000000000p+0f * v0);
    const int v2 = int(tg_u32(point) % 5u);
    const float v3 = p1[v2];
    const float v4 = (v1 + v3);
    p2[point] = v4;
  }
}
"""


def test_a_map_uses_the_linear_index_and_computes_shared_work_once() -> None:
    x, row, out = buffer("float32", 8, 5), buffer("float32", 5), buffer("float32", 8, 5)
    i, j = axes(8, 5)
    scaled = call("multiply", const(1.5, np.dtype(np.float32)), load(x, i, j))
    nest = MapNest((8, 5), (store(out, (i, j), call("add", scaled, load(row, j))),))
    assert functions(node("axpy", nest)) == MAP


REDUCTION = """\
extern "C" __global__ void __launch_bounds__(32)
tg_total(const tg_half* __restrict__ p0, tg_half* p1) {
  tg_wait_for_primaries();
  tg_launch_dependents();
  const int thread = int(threadIdx.x);
  const int block = int(blockIdx.x);
  const int lane = thread % 4;
  const int point = block * 8 + thread / 4;
  const bool live = point < 2;
  float total0 = 0x0.0p+0f;
  if (live) {
    #pragma unroll
    for (int turn = 0; turn < 4; ++turn) {
      const int step = lane + turn * 4;
      const int v0 = point * 16 + step;
      const tg_half v1 = p0[v0];
      total0 = (total0 + tg_cast<float>(v1));
    }
  }
  for (int width = 2; width >= 1; width /= 2) {
    const float v2 = tg_shuffle_xor(total0, thread, width);
    total0 = (total0 + v2);
  }
  if (live && lane == 0) {
    p1[point] = tg_cast<tg_half>(total0);
  }
}
"""


def test_a_reduction_of_float16_folds_in_float() -> None:
    x, out = buffer("float16", 2, 16), buffer("float16", 2)
    assert functions(node("total", reduction(x, out, (0,), ADD))) == REDUCTION


def test_only_small_kernels_trigger_dependent_launch() -> None:
    for size, blocks, lets in ((16 * 256, 16, True), (17 * 256, 17, False)):
        kernel = negation(size)
        assert unit_source(plan(kernel)).kernels[kernel].grid[0] == blocks
        text = functions(kernel)
        assert text.count("tg_wait_for_primaries();") == 1
        assert text.count("tg_launch_dependents();") == lets


def test_a_kernel_that_sets_a_condition_takes_its_handle_after_the_buffers() -> None:
    flag, out = buffer("bool"), buffer("bool")
    nest = MapNest((), (store(out, (), load(flag)),), (SetCondition(5, load(flag)),))
    step = node("step", nest)
    code = unit_source(plan(step)).kernels[step]
    assert code.parameters == (flag, out, ConditionHandle(5))
    text = functions(step)
    assert "tg_step(const bool* __restrict__ p0, bool* p1, tg_u64 condition0)" in text
    assert "cudaGraphSetConditional(condition0, tg_u32(v0));" in text


@pytest.mark.parametrize(
    ("columns", "reads", "without_clusters"), [(4096, 1, 1), (200_000, 1, 3), (300_000, 3, 3)]
)
def test_a_row_that_registers_can_hold_is_read_once(
    columns: int, reads: int, without_clusters: int
) -> None:
    x, out = buffer("float32", 64, columns), buffer("float32", 64, columns)
    text = functions(node("softmax", softmax(x, out, 1)))
    of_cluster, _, alone = text.partition("#else")
    assert of_cluster.count("= p0[") == reads
    assert (alone or of_cluster).count("= p0[") == without_clusters
    assert ("[item]" in of_cluster) == (reads == 1)


def prefetched(dtype: str, rows: int, columns: int) -> tuple[int, int, int, int] | None:
    """The prefetch distance in blocks, the blocks that prefetch, and the size in elements and in
    bytes.
    """
    x, out = buffer(dtype, rows, columns), buffer(dtype, rows, columns)
    text = functions(node("softmax", softmax(x, out, 1)))
    found = re.search(
        r"if \(thread == 0 && block \+ (\d+) < (\d+)\) {\n"
        r" +const int ahead = int\(block \+ \1\) \* (\d+);\n"
        r" +tg_prefetch_l2\(p0 \+ ahead, (\d+)\);\n",
        text,
    )
    assert text.count("tg_prefetch_l2(") == (found is not None)
    return None if found is None else tuple(map(int, found.groups()))  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("dtype", "rows", "columns"),
    [
        ("float32", 10_001, 4096),
        ("float32", 2003, 16_384),
        ("float64", 10_003, 1001),  # four rows a block; of the last, three
        ("float16", 40_001, 1000),  # by vectors
    ],
)
def test_whole_blocks_of_rows_are_prefetched_three_megabytes_ahead(
    dtype: str, rows: int, columns: int
) -> None:
    found = prefetched(dtype, rows, columns)
    assert found is not None
    ahead, blocks, elements, nbytes = found
    size = np.dtype(dtype).itemsize
    assert elements % columns == 0
    assert blocks == rows // (elements // columns)
    assert elements * size - 16 < nbytes <= elements * size
    assert nbytes % 16 == 0
    assert 0 <= ahead * nbytes - (3 << 20) < 2 * nbytes


@pytest.mark.parametrize(
    ("dtype", "rows", "columns"),
    [
        ("float32", 4000, 4096),  # the cache holds what was used last
        ("float32", 400_000, 64),  # too little for an instruction each
        ("float16", 40_001, 1001),
        ("float32", 1000, 50_257),  # clusters
    ],
)
def test_rows_are_prefetched_where_that_pays(dtype: str, rows: int, columns: int) -> None:
    assert prefetched(dtype, rows, columns) is None


@pytest.mark.parametrize(
    ("taken", "fetches"),
    [
        (lambda x: x, True),
        (lambda x: x * 2 + x, True),
        (lambda x: x[::2], False),
        (lambda x: x[:, ::-1], False),
        (lambda x: x[:, 1:], False),
    ],
)
def test_rows_are_prefetched_if_they_are_contiguous(
    taken: Callable[[Any], Any], fetches: bool
) -> None:
    def centred(x: Any) -> Any:
        x = taken(x)
        return x - np.max(x, axis=1, keepdims=True)

    lowered = tracegraph.jit(centred, device="cuda").lower(ArrayType("float32", (20_000, 4096)))
    assert ("tg_prefetch_l2(p" in lowered.source) == fetches


def test_rows_longer_than_a_block_holds_are_a_clusters() -> None:
    def code(dtype: str, rows: int, columns: int) -> KernelCode:
        x, out = buffer(dtype, rows, columns), buffer(dtype, rows, columns)
        one = node("softmax", softmax(x, out, 1))
        return unit_source(plan(one)).kernels[one]

    assert code("float32", 1000, 16_384).cluster == 1
    assert code("float64", 1000, 16_384).cluster == 2  # registers hold half as many
    assert code("float32", 1000, 20_000).cluster == 2
    assert code("float32", 1000, 50_257).cluster == 2
    assert code("float32", 1000, 50_257).block == (512, 1, 1)  # not 4 of 256, which wait longer
    assert code("float32", 1000, 100_000).cluster == 4
    assert code("float16", 1000, 50_264).cluster == 2  # two elements in a register
    assert code("float16", 1000, 50_257).cluster == 4  # where rows begin between words, one
    assert code("float32", 64, 50_257).cluster == 8  # so that few rows are many blocks
    assert code("float32", 1000, 1_000_000).cluster == 8
    assert code("float32", 64, 50_257).grid == (512, 1, 1)


def test_blocks_of_clusters_leave_room_for_others() -> None:
    """Registers are limited so that blocks can run while others wait for their cluster."""

    def bounds(dtype: str, columns: int) -> str:
        x, out = buffer(dtype, 1000, columns), buffer(dtype, 1000, columns)
        text = functions(node("softmax", softmax(x, out, 1)))
        return text[text.index("__launch_bounds__(") :].split(")")[0].split("(")[1]

    assert bounds("float32", 4096) == "256"  # alone with its row
    assert bounds("float32", 20_000) == "256, 4"
    assert bounds("float32", 100_000) == "512, 2"
    assert bounds("float16", 100_000) == "256, 2"  # 104 values a thread, for vectors are whole
    assert bounds("float64", 100_000) == "256, 2"
    assert bounds("float64", 250_000) == "512"


def test_workspace_is_asked_for_where_blocks_share_a_loop() -> None:
    x, out = buffer("float64", 100_000), buffer("float64")
    total = node("total", reduction(x, out, (), ADD))
    code = unit_source(plan(total)).kernels[total]
    splits = code.grid[0]
    assert splits > 1
    assert isinstance(code.parameters[-1], WorkspaceAddress)
    assert code.workspace_bytes >= 4 + 8 * splits
    small = node("small", reduction(buffer("float64", 100), out, (), ADD))
    assert unit_source(plan(small)).kernels[small].workspace_bytes == 0


def test_more_blocks_share_a_loop_whose_steps_store() -> None:
    """A lane waits for memory at each: loads do not pass a store."""
    size = 4147
    x, out, copy = buffer("float32", size), buffer("float32"), buffer("float32", size)
    fold = reduction(x, out, (), ADD)
    assert isinstance(fold, ReduceNest)
    (step,) = space_index((size,))
    stores = (Store(copy, (step,), Load.make(x, (step,))),)
    both = RowNest((), (size,), (Pass(fold.accumulators, stores),), fold.stores)

    def blocks(nest: Nest) -> int:
        kernel = node("total", nest)
        return unit_source(plan(kernel)).kernels[kernel].grid[0]

    assert blocks(fold) == 1
    assert blocks(both) == 4


def test_equal_kernels_share_a_function() -> None:
    first, second, other = negation(256), negation(256), negation(256, "int32")
    unit = unit_source(plan(first, second, other))
    names = [unit.kernels[n].name for n in (first, second, other)]
    assert names[0] == names[1] != names[2]
    assert all(re.fullmatch(r"tg_negative_[0-9a-f]{10}", name) for name in names)
    assert unit.kernels[first].parameters != unit.kernels[second].parameters
    assert unit.source.count("__global__") == 2


def test_names_are_identifiers_whatever_the_function_was_called() -> None:
    odd = KernelNode(negation(4).kernel.__class__("<lambda> ×2", negation(4).kernel.nests))
    (code,) = unit_source(plan(odd)).kernels.values()
    assert re.fullmatch(r"[A-Za-z_]\w*", code.name, re.ASCII)


@pytest.mark.parametrize(
    ("size", "threads", "blocks"),
    # the last may begin before its first point, so that the argument it stores to is aligned
    [(1, 32, 1), (100, 128, 1), (1000, 256, 4), (1 << 22, 256, 2049)],
)
def test_geometry_of_a_map(size: int, threads: int, blocks: int) -> None:
    one = negation(size)
    code = unit_source(plan(one)).kernels[one]
    assert (code.grid, code.block) == ((blocks, 1, 1), (threads, 1, 1))


def test_a_kernel_over_nothing_can_still_be_launched() -> None:
    empty = negation(0)
    code = unit_source(plan(empty)).kernels[empty]
    assert code.grid == (1, 1, 1)
    assert "p1[" not in functions(empty)


def test_indices_are_64_bit_only_where_they_must_be() -> None:
    small, large = functions(negation(2**31 - 2**12)), functions(negation(2**33))
    assert "const int point" in small
    assert "const tg_i64 point = tg_i64(block)" in large
    x, out = buffer("int8", 2**20, 2**13), buffer("int8", 1000)
    (i,) = axes(1000)
    strided = node("far", MapNest((1000,), (store(out, (i,), load(x, i * 1000, const(3))),)))
    assert "const tg_i64 v0 = tg_i64(point) * 8192000 + 3;" in functions(strided)


def test_the_end_of_a_maps_last_block_need_not_fit_an_int() -> None:
    text = functions(negation(2**31 - 100, "int8"))
    assert "block * 8192 + start <= 2147475356)" in text
    x, out = buffer("int8", 16, 2**31 - 70), buffer("int8", 2**31 - 70, 16)
    i, j = axes(2**31 - 70, 16)
    transposed = node("transposed", MapNest((2**31 - 70, 16), (store(out, (i, j), load(x, j, i)),)))
    assert "loaded_start <= 2147483514" in functions(transposed)


def scan(size: int, dtype: str) -> KernelNode:
    x, out = buffer(dtype, size), buffer(dtype, size)
    (i,) = axes(size)
    return node("scan", ScanNest((size,), 0, ADD, store(out, (i,), load(x, i))))


@pytest.mark.parametrize(
    ("shape", "blocks"),
    [((255, 255), 1), ((22, 256), 22), ((2048, 716), 2048), ((4096, 716), 16)],
)
def test_few_long_lines_have_a_block_each(shape: tuple[int, int], blocks: int) -> None:
    x, out = buffer("float32", *shape), buffer("float32", *shape)
    at = axes(*shape)
    running = node("scan", ScanNest(shape, 1, ADD, store(out, at, load(x, *at))))
    assert unit_source(plan(running)).kernels[running].grid == (blocks, 1, 1)


def test_the_end_of_a_scans_last_split_need_not_fit_an_int() -> None:
    # 2048 splits of 2**20 steps; the last has fewer
    assert "const tg_i64 end = tg_i64(split) * 1048576" in functions(scan(2**31 - 100_000, "int8"))
    assert "const int end = int(split)" in functions(scan(2**30, "int8"))


def test_a_loop_of_2_to_31_steps_ends() -> None:
    assert "for (tg_i64 step = 0; step < 2147483648;" in functions(scan(2**31, "float16"))
    counts, at = buffer("int64", 5), buffer("int8", 2**31)
    (i,) = axes(2**31)
    place = store(counts, (AsIndex.make(load(at, i)),), const(np.int64(1)))
    count = node("count", ScatterNest((2**31,), 1, ADD, place))
    assert "for (tg_i64 step = 0; step < 2147483648;" in functions(count)


def test_memory_that_a_kernel_overwrites_is_not_declared_free_of_aliases() -> None:
    type_ = ArrayType(np.float32, (64,))
    x, out = Buffer("scratch", 0, type_), Buffer("scratch", 1, type_)
    (i,) = axes(64)
    copy = node("copy", MapNest((64,), (store(out, (i,), load(x, i)),)))
    assert "(const float* p0, float* p1)" in functions(copy, offsets={x: 256, out: 256})
    apart = functions(copy, offsets={x: 0, out: 256})
    assert "(const float* __restrict__ p0, float* p1)" in apart


def test_an_expression_may_be_deeper_than_the_interpreters_stack() -> None:
    x, out = buffer("float32", 8), buffer("float32", 8)
    (i,) = axes(8)
    value = load(x, i)
    for _ in range(5000):
        value = call("add", value, load(x, i))
    assert (
        functions(node("deep", MapNest((8,), (store(out, (i,), value),)))).count(" + v0)") == 5000
    )


def test_an_op_without_text_for_a_dtype_is_named() -> None:
    x, out = buffer("complex64", 8), buffer("complex64", 8)
    (i,) = axes(8)
    floored = call("floor_divide", load(x, i), load(x, i))
    with pytest.raises(TypeError, match="op floor_divide has no C\\+\\+ text for complex64"):
        functions(node("floor", MapNest((8,), (store(out, (i,), floored),))))


def test_an_index_of_data_is_read_as_64_bits() -> None:
    x, at, out = buffer("int8", 9), buffer("uint8", 3), buffer("int8", 3)
    (i,) = axes(3)
    gather = MapNest((3,), (store(out, (i,), load(x, AsIndex.make(load(at, i)))),))
    assert "const tg_i64 v1 = tg_i64(v0);" in functions(node("gather", gather))
