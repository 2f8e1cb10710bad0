"""Trees of arrays moved to a GPU and back."""

from __future__ import annotations

import numpy as np

import tracegraph
from tracegraph import block_until_ready, device_get, device_put, tree


def test_a_tree_is_moved_to_the_gpu_and_back() -> None:
    state = {"w": np.arange(6.0, dtype="float32").reshape(2, 3), "rest": (1.5, np.ones(4, bool))}
    moved = device_put(state, "cuda")
    assert {x.device for x in tree.leaves(moved)} == {"cuda:0"}
    assert device_put(moved, "cuda:0")["w"] is moved["w"]
    doubled = tracegraph.jit(lambda state: tree.map(lambda x: x + x, state))(moved)
    assert block_until_ready(doubled) is doubled
    for found, given in zip(tree.leaves(device_get(doubled)), tree.leaves(state), strict=True):
        np.testing.assert_array_equal(found, given + np.asarray(given))
    assert device_put(doubled, "host")["w"].device == "host"


def test_parts_stay_on_the_host() -> None:
    there, here = device_put((np.ones(2), np.ones(3)), ("cuda", "host"))
    assert (there.device, here.device) == ("cuda:0", "host")
