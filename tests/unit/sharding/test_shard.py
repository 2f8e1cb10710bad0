"""Sharded functions on meshes of the host: blocks in, blocks out, and what does not fit."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import tracegraph
from tracegraph import Mesh, PartitionSpec, errors, shard

P = PartitionSpec
each_host = pytest.mark.usefixtures("each_host")
LINE = Mesh(4, "x", device="host")
GRID = Mesh((2, 3), ("x", "y"), device="host")
AROUND = [(i, (i + 1) % 4) for i in range(4)]
A = np.random.default_rng(0).standard_normal((12, 6))


def sharded(fun: Any, mesh: Mesh, in_specs: Any, out_specs: Any) -> Any:
    return tracegraph.jit(shard(fun, mesh=mesh, in_specs=in_specs, out_specs=out_specs))


@each_host
@pytest.mark.parametrize(
    ("mesh", "spec"),
    [
        (LINE, P("x")),
        (LINE, P()),
        (GRID, P("x", "y")),
        (GRID, P("y", "x")),
        (GRID, P(("x", "y"))),
        (GRID, P(("y", "x"), None)),
        (GRID, P(None, "y")),
    ],
)
def test_blocks_go_in_and_come_out_by_specs(mesh: Mesh, spec: PartitionSpec) -> None:
    double = sharded(lambda x: 2 * x, mesh, spec, spec)
    found = double(A)
    np.testing.assert_array_equal(np.asarray(found), 2 * A)
    np.testing.assert_array_equal(np.asarray(double(found)), 4 * A)
    for shard_ in found.addressable_shards:
        np.testing.assert_array_equal(np.asarray(shard_.data), 2 * A[shard_.index])
    assert len(found.addressable_shards) == mesh.size
    assert double.stats()["traces"] == 1
    put = tracegraph.device_put(A, mesh, spec)
    np.testing.assert_array_equal(np.asarray(put), A)
    assert put.placement == found.placement


@each_host
def test_devices_know_where_they_are() -> None:
    def number(x: Any) -> Any:
        return x + 10 * tracegraph.axis_index("x") + tracegraph.axis_index("y")

    found = sharded(number, GRID, P("x", "y"), P("x", "y"))(np.zeros((2, 3)))
    np.testing.assert_array_equal(np.asarray(found), [[0, 1, 2], [10, 11, 12]])


@each_host
def test_the_index_reaches_loops_and_branches() -> None:
    def fun(x: Any) -> Any:
        def step(i: Any, x: Any) -> Any:
            own = tracegraph.axis_index("x")
            return tracegraph.cond(own == i, lambda: x + own, lambda: x - 1)

        return tracegraph.fori_loop(0, 4, step, x)

    found = sharded(fun, LINE, P("x"), P("x"))(np.zeros(4))
    np.testing.assert_array_equal(np.asarray(found), [-3, -2, -1, 0])


@each_host
def test_sums_along_one_axis_of_two() -> None:
    def sums(x: Any) -> Any:
        return tracegraph.psum(x.sum(1), "y"), tracegraph.psum(x.sum(), ("x", "y"))

    rows, total = sharded(sums, GRID, P("x", "y"), (P("x"), P()))(A)
    np.testing.assert_allclose(np.asarray(rows), A.sum(1), 1e-13)
    np.testing.assert_allclose(float(total), A.sum(), 1e-13)


@each_host
def test_trees_static_arguments_numbers_and_constants() -> None:
    table = np.arange(6.0)

    def fun(state: Any, power: Any, factor: Any) -> Any:
        return {"x": factor * state["x"] ** power + table, "n": state["n"] + 1}

    mapped = shard(
        fun,
        mesh=LINE,
        in_specs=({"x": P("x"), "n": P()}, None, P()),
        out_specs={"x": P("x"), "n": P()},
    )
    jitted = tracegraph.jit(mapped, static_argnums=1)
    found = jitted({"x": A, "n": 3}, 2, 0.5)
    np.testing.assert_allclose(np.asarray(found["x"]), 0.5 * A**2 + table, 1e-13)
    assert int(found["n"]) == 4
    assert jitted.stats()["builds"] == 1
    again = jitted({"x": found["x"], "n": found["n"]}, 2, 0.5)
    assert int(again["n"]) == 5


def centred(x: Any) -> Any:
    return x - tracegraph.pmean(x, "x")


def test_it_runs_without_jit_as_well() -> None:
    mapped = shard(
        lambda x: x - tracegraph.pmean(x, "x"), mesh=LINE, in_specs=P("x"), out_specs=P("x")
    )
    found = mapped(np.arange(4.0))
    np.testing.assert_allclose(np.asarray(found), np.arange(4.0) - 1.5)
    assert "sharded over Mesh(x=4" in repr(mapped)


def test_dtypes_and_empty_blocks() -> None:
    for dtype in ("bool", "int8", "uint64", "float16", "complex64", tracegraph.numpy.bfloat16):
        x = np.arange(8).astype(dtype)
        found = sharded(lambda x: tracegraph.ppermute(x, "x", AROUND), LINE, P("x"), P("x"))(x)
        np.testing.assert_array_equal(np.asarray(found), np.roll(x, 2))
    nothing = sharded(lambda x: (x, tracegraph.psum(x.sum(), "x")), LINE, P("x"), (P("x"), P()))
    whole = sharded(lambda x: tracegraph.psum(x, "x"), LINE, P("x"), P())(np.zeros((8, 0)))
    assert whole.shape == (2, 0)
    empty, total = nothing(np.zeros((0, 3)))
    assert (empty.shape, float(total)) == ((0, 3), 0.0)


def test_keys_of_each_device_differ() -> None:
    def draw(key: Any) -> Any:
        own = tracegraph.random.per_device(key, "x")
        return tracegraph.random.uniform(key, (1,)), tracegraph.random.uniform(own, (1,))

    same, own = sharded(draw, LINE, P(), (P(), P("x")))(tracegraph.random.key(3))
    assert same.shape == (1,)
    assert np.unique(np.asarray(own)).size == 4


# arrays in blocks


def test_arrays_are_made_of_blocks_without_copies() -> None:
    blocks = [np.full((2, 3), float(i)) for i in range(4)]
    whole = tracegraph.make_array_from_local(blocks, LINE, P("x"))
    assert whole.shape == (8, 3)
    assert whole.device == "mesh:host:x=4"
    assert whole.is_fully_addressable
    for i, block in enumerate(whole.addressable_shards):
        assert np.shares_memory(np.asarray(block.data), blocks[i])
        assert np.shares_memory(np.from_dlpack(block.data), blocks[i])
    found = sharded(lambda x: x + 1, LINE, P("x"), P("x"))(whole)
    np.testing.assert_array_equal(np.asarray(found), np.concatenate(blocks) + 1)
    with pytest.raises(errors.ShardingError, match="a block for each of 4 devices"):
        tracegraph.make_array_from_local(blocks[:3], LINE, P("x"))


def test_an_array_in_blocks_is_read_copied_and_moved_as_any_other() -> None:
    x = tracegraph.device_put(A, LINE, P("x"))
    np.testing.assert_array_equal(np.asarray(x.to_device("host")), A)
    np.testing.assert_array_equal(np.asarray(tracegraph.device_put(x, GRID, P("y", "x"))), A)
    assert tracegraph.device_put(x, LINE, P("x", None)) is x
    np.testing.assert_array_equal(np.asarray(pickle.loads(pickle.dumps(x))), A)
    assert "device='mesh:host:x=4'" in repr(x)
    assert tracegraph.block_until_ready(x) is x
    tree = tracegraph.device_put({"a": A, "b": A[0]}, LINE, {"a": P("x"), "b": P()})
    np.testing.assert_array_equal(np.asarray(tree["b"]), A[0])
    (only,) = tracegraph.asarray(A).addressable_shards
    assert np.asarray(only.data).shape == A.shape


def test_meshes_and_specs_are_values() -> None:
    assert Mesh(4, "x", device="host") == LINE
    assert pickle.loads(pickle.dumps(GRID)) == GRID
    assert copy.copy(GRID) == GRID
    assert len({LINE, Mesh((4,), ["x"], device="host"), GRID}) == 2
    assert pickle.loads(pickle.dumps(P("x", None, ("y", "z")))) == P("x", None, ("y", "z"))
    assert list(P("x", None, ("y", "z"))) == ["x", None, ("y", "z")]
    assert GRID.devices.tolist() == [[0, 1, 2], [3, 4, 5]]


# what does not fit


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: Mesh(0, "x", device="host"), "positive number"),
        (lambda: Mesh((2, 2), "x", device="host"), "distinct name for each axis"),
        (lambda: Mesh((2, 2), ("x", "x"), device="host"), "distinct name"),
        (lambda: Mesh(2, "not a word", device="host"), "a word such as"),
        (lambda: Mesh(2, "x", device=3), "a string such as"),  # type: ignore[arg-type]
        (lambda: P("x", "x"), "names 'x' twice"),
        (lambda: P(3), "PartitionSpec is the name"),  # type: ignore[arg-type]
        (lambda: shard(np.sin, mesh=4, in_specs=P(), out_specs=P()), "tracegraph.Mesh"),  # type: ignore[arg-type]
        (
            lambda: sharded(np.sin, LINE, P("z"), P()),
            "in_specs is .* no axis 'z'; its axes",
        ),
        (
            lambda: sharded(np.sin, LINE, P(), {"a": [P("z")]}),
            r"out_specs\['a'\]\[0\] .*no axis 'z'",
        ),
        (lambda: shard(mesh=LINE, in_specs=P(), out_specs=P("z")), "no axis 'z'"),
        (lambda: sharded(np.sin, LINE, "x", P()), "must be a PartitionSpec, or a tuple"),
        (lambda: sharded(np.sin, LINE, ("x",), P()), r"in_specs\[0\].* PartitionSpec\('x'\), not"),
        (
            lambda: tracegraph.device_put(A, LINE, "x"),
            "the spec of x must be a PartitionSpec",
        ),
        (lambda: sharded(np.sin, LINE, (P(), P()), P())(A), "each of its 1 arguments"),
        (
            lambda: sharded(np.sin, LINE, P(None, "x"), P())(A),
            "nearest extents that can are 4 and 8",
        ),
        (lambda: sharded(np.sin, LINE, P(None, None, "x"), P())(A), "has 2 axes"),
        (lambda: sharded(np.sin, LINE, ([P()],), P())(A), "whose tree is"),
        (lambda: sharded(np.sum, LINE, P("x"), P("x"))(A), "result, f64\\[\\], has 0 axes"),
        (lambda: sharded(lambda x: x, LINE, P(), P())(x=A), "by position"),
        (lambda: tracegraph.device_put(A, "host", P("x")), "device_put\\(x, mesh, spec\\)"),
        (lambda: tracegraph.device_put(A, LINE, P(None, "x")), "axis 1 of x, f64\\[12,6\\]"),
        (
            lambda: tracegraph.jit(
                shard(np.sin, mesh=LINE, in_specs=P(), out_specs=P()), device="host"
            ),
            "takes no device",
        ),
    ],
)
def test_misuse_is_named(call: Any, text: str) -> None:
    with pytest.raises(errors.ShardingError, match=text):
        call()


def test_there_are_meshes_of_the_host_and_of_gpus() -> None:
    with pytest.raises(errors.MeshDeviceError, match='the kinds are "host" and "cuda"'):
        Mesh(2, "x", device="tpu")
    assert Mesh(2, "x", device="cuda").device == "mesh:cuda:x=2"


def test_a_mesh_of_gpus_is_lowered_without_them() -> None:
    mesh = Mesh(2, "x", device="cuda")
    lowered = sharded(lambda x: tracegraph.psum(x, "x"), mesh, P("x"), P()).lower(A)
    assert "all-reduce sum over x" in str(lowered)
    assert "for each device of Mesh(x=2, device='cuda')" in str(lowered)
    assert "devices store into the memory of one another" in lowered.explain()


def test_results_that_differ_need_a_spec_that_says_so() -> None:
    def fun(x: Any) -> Any:
        return tracegraph.psum(x, "x"), np.sin(x.sum())

    with pytest.raises(errors.OutSpecError) as raised:
        sharded(fun, LINE, P("x"), (P(), P()))(A)
    text = str(raised.value)
    assert "PartitionSpec() for result[1] of" in text
    assert "argument x, divided by PartitionSpec('x')" in text
    assert "sin at test_shard.py:" in text


def test_what_may_deadlock_is_refused_before_anything_is_built() -> None:
    def fun(x: Any) -> Any:
        return tracegraph.cond(x[0, 0] > 0, lambda: tracegraph.psum(x, "x"), lambda: x)

    jitted = sharded(fun, LINE, P("x"), P("x"))
    with pytest.raises(errors.UniformityError, match="argument x, divided by"):
        jitted(A)
    assert jitted.stats()["builds"] == 0


def test_sharded_functions_stand_alone() -> None:
    double = shard(lambda x: 2 * x, mesh=LINE, in_specs=P("x"), out_specs=P("x"))
    for transform in (tracegraph.vmap, tracegraph.jit):
        with pytest.raises(errors.ShardingError, match="jit it alone"):
            transform(lambda x: double(x) + 1)(A)
    x = tracegraph.device_put(A, LINE, P("x"))
    for operation, name in ((lambda: x + 1, "add"), (x.copy, "copy")):
        with pytest.raises(errors.ShardingError, match="put this into the sharded") as raised:
            operation()
        assert str(raised.value).startswith(f"an argument of {name} is an Array divided over")
    with pytest.raises(errors.ShardingError, match="takes it over"):
        sharded(lambda x: x, LINE, P(), P())(x)
    with pytest.raises(BufferError, match="no single piece of memory"):
        np.from_dlpack(x)
    with pytest.raises(errors.ExportError, match="devices of a mesh"):
        tracegraph.jit(double).lower(A).compile().export_graph(A)
