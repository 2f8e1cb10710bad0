"""Trees of arrays moved to devices and back; programs run by interpretation on a fake device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracegraph
from tests.fakes.fake_device import FakeBuffer, FakeCompiler
from tracegraph import block_until_ready, device_get, device_put, errors
from tracegraph.arrays.array import Array


def test_a_tree_is_moved_and_comes_back(compiler: FakeCompiler) -> None:
    state = {"w": np.arange(3.0, dtype="float32"), "rest": (1, None, Array(np.ones(2)))}
    moved = device_put(state, "fake:0")
    assert [x.device for x in tracegraph.tree.leaves(moved)] == ["fake:0"] * 3
    assert device_put(moved, "fake:0")["w"] is moved["w"]
    back = device_get(moved)
    assert all(type(x) is np.ndarray for x in tracegraph.tree.leaves(back))
    assert back["w"].dtype == np.float32
    assert back["rest"][1] is None
    np.testing.assert_array_equal(back["w"], state["w"])


def test_parts_go_to_several_devices(compiler: FakeCompiler) -> None:
    there = device_put(np.ones(2), "fake:1")
    a, b = device_put(((np.ones(1), np.ones(2)), 3.0), ("fake:0", there.device))
    assert [x.device for x in (*a, b)] == ["fake:0", "fake:0", "fake:1"]


def test_without_a_device_it_is_the_one_that_functions_run_on() -> None:
    assert device_put(1.5).device == tracegraph.jit(lambda: 1.5)().device


def test_arrays_of_other_libraries_are_taken() -> None:
    class Exporter:
        """What speaks DLPack alone."""

        data = np.arange(2.0)

        def __dlpack__(self, **options: Any) -> Any:
            return self.data.__dlpack__(**options)

        def __dlpack_device__(self) -> Any:
            return self.data.__dlpack_device__()

    moved = device_put([Exporter()], "host")
    assert type(moved[0]) is Array
    np.testing.assert_array_equal(moved[0], [0.0, 1.0])


def test_traced_values_stay() -> None:
    @tracegraph.jit(device="host")
    def f(x: Any) -> Any:
        assert device_put(x) is x
        return device_put({"x": x, "one": np.ones(2)}, "host")

    np.testing.assert_array_equal(f(2.0)["one"], [1.0, 1.0])
    with pytest.raises(errors.UnsupportedByTracerError, match="'cuda' in a program that runs on"):
        tracegraph.jit(lambda x: device_put(x, "cuda"), device="host")(1.0)
    with pytest.raises(errors.TracerArrayError):
        tracegraph.jit(device_get, device="host")(1.0)


def test_waiting_gives_the_tree_itself(compiler: FakeCompiler) -> None:
    tree = {"x": device_put(np.ones(2), "fake:0"), "name": "text"}
    assert block_until_ready(tree) is tree
    assert isinstance(tree["x"].data, FakeBuffer)
    assert tree["x"].data.waits == 1


def test_misuse_is_told() -> None:
    with pytest.raises(TypeError, match=r"leaf x\['a'\] of device_put is of type str; it moves"):
        device_put({"a": "text"}, "host")
    with pytest.raises(TypeError, match=r"moves to a device such as .* got 5"):
        device_put(1.0, 5)
    with pytest.raises(ValueError, match=r"no prefix of its tree.*give one device"):
        device_put((1, 2), ("host",))
