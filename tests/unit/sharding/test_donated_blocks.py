"""Donated arguments of sharded functions: each device writes over its own block."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracegraph
from tracegraph import Mesh, PartitionSpec, errors, shard

P = PartitionSpec
MESH = Mesh(2, "x", device="host")
SIZE = 1 << 12


def addresses(x: Any) -> list[int]:
    return [block.__array_interface__["data"][0] for block in x.memory.blocks]


@pytest.fixture
def advance() -> Any:
    mapped = shard(
        lambda x, y: x + tracegraph.psum(y, "x"), mesh=MESH, in_specs=P("x"), out_specs=P("x")
    )
    return tracegraph.jit(mapped, donate_argnums=0)


def test_blocks_are_written_over(advance: Any) -> None:
    x, y = advance(np.zeros(SIZE), np.ones(SIZE)), np.ones(SIZE)
    before = addresses(x)
    donated, x = x, advance(x, y)
    assert addresses(x) == before
    np.testing.assert_array_equal(x, np.full(SIZE, 4.0))
    with pytest.raises(errors.DonatedArrayError):
        np.asarray(donated)


def test_a_block_that_others_see_stays(advance: Any) -> None:
    x, y = advance(np.zeros(SIZE), np.ones(SIZE)), np.ones(SIZE)
    before, seen = addresses(x), x.addressable_shards[1].data
    x = advance(x, y)
    same = [one == other for one, other in zip(addresses(x), before, strict=True)]
    assert same == [True, False]
    np.testing.assert_array_equal(seen, np.full(SIZE // 2, 2.0))
    np.testing.assert_array_equal(x, np.full(SIZE, 4.0))


def test_a_call_that_fails_gives_them_back() -> None:
    mesh = Mesh(2, "x", device="host")
    other = tracegraph.jit(
        shard(lambda x: x + 1, mesh=mesh, in_specs=P(None), out_specs=P(None)), donate_argnums=0
    )
    x = tracegraph.device_put(np.arange(4.0), MESH, P("x"))
    with pytest.raises(errors.ShardingError, match="is divided over"):
        other(x)
    np.testing.assert_array_equal(x, np.arange(4.0))
