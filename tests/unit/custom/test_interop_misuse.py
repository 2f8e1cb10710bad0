"""Mistakes with other code in programs: each message says what came, what is needed, what to do."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

import tracegraph
from tracegraph import ArrayType, debug, errors, event, pure_callback

V = ArrayType("float64", (4,))
X = np.arange(4.0)
C = ctypes.CDLL(None)
TEXT = 'extern "C" __global__ void f(const double* x, double* y) { y[threadIdx.x] = x[0]; }'


def declared(reference: Any, **given: Any) -> Any:
    options = {"source": TEXT, "entry": "f", "out": lambda x: x, "grid": 1, "block": 4, **given}
    return tracegraph.kernel(**options)(reference)


def device_array(address: int) -> Any:
    described = {"typestr": "<f8", "shape": V.shape, "data": (address, False), "version": 3}
    return type("DeviceArray", (), {"__cuda_array_interface__": described})()


def looped(call: Any) -> Any:
    """A program that calls something in the body of a loop, and of a branch in it."""

    def branch(x: Any) -> Any:
        call(x)
        return x + 1

    def step(i: Any, x: Any) -> Any:
        return tracegraph.cond(x[0] < 0, lambda x: x, branch, x)

    return lambda x: tracegraph.fori_loop(0, 3, step, x)


def timed(x: Any) -> None:
    with debug.timed("a step"):
        x += 1


@pytest.mark.parametrize("device", ["host", "cuda"])
@pytest.mark.parametrize(
    ("call", "error", "parts"),
    [
        (
            lambda x: tracegraph.host_call(C.free),
            errors.HostCallInBodyError,
            (
                "free is called inside fori_loop",
                "hold no host nodes",
                "call it outside",
                "debug.callback",
            ),
        ),
        (
            lambda x: event.record(0x5000, x),
            errors.EventInBodyError,
            (
                "event.record is called inside fori_loop",
                "hold no event nodes",
                "before or after fori_loop",
            ),
        ),
        (
            lambda x: timed(x.copy()),
            errors.EventInBodyError,
            (
                "debug.timed is called inside fori_loop",
                "hold no event nodes",
                "before or after fori_loop",
            ),
        ),
    ],
)
def test_a_node_that_no_body_holds(call: Any, error: Any, parts: Any, device: str) -> None:
    with pytest.raises(error) as caught:
        tracegraph.jit(looped(call), device=device).lower(X)
    for part in (*parts, "at test_interop_misuse.py:"):
        assert part in str(caught.value)


@pytest.mark.parametrize("device", ["host", "cuda"])
def test_a_callback_under_vmap_without_a_rule(device: str) -> None:
    f = tracegraph.vmap(lambda x: pure_callback(np.sin, V, x))
    with pytest.raises(errors.CallbackBatchError) as caught:
        tracegraph.jit(f, device=device).lower(np.ones((2, 4)))
    for part in (
        "pure_callback(sin, ...) does not say how it is called for many lanes",
        'vmap_method="sequential"',
        '"expand_dims"',
        '"broadcast_all"',
        "at test_interop_misuse.py:",
    ):
        assert part in str(caught.value)


def test_a_kernel_under_vmap_without_a_rule() -> None:
    with pytest.raises(errors.CustomKernelError) as caught:
        tracegraph.vmap(declared(lambda x: x))(np.ones((2, 4)))
    for part in (
        "vmap does not know how to apply it to many lanes",
        'batching="sequential"',
        "batching(lanes, batched, *arguments)",
        "called at test_interop_misuse.py:",
    ):
        assert part in str(caught.value)


@pytest.mark.parametrize("apart", [0, 8, 24])
def test_two_values_for_one_address(apart: int) -> None:
    first, second = device_array(1 << 40), device_array((1 << 40) + apart)
    with pytest.raises(errors.CustomKernelError) as caught:
        tracegraph.embed(7, reads=(X, X), at=(first, second), out=V, host=np.add)
    for part in (
        "at[0], 32 bytes at 0x10000000000",
        f"at[1], 32 bytes at {(1 << 40) + apart:#x}",
        "overlap: one value of reads would be copied over the other",
        "give each an array of its own",
        "at test_interop_misuse.py:",
    ):
        assert part in str(caught.value)


def test_values_for_neighbouring_addresses_are_none_too_many() -> None:
    at = tuple([device_array((1 << 40) + offset) for offset in (32, 0)])
    found = tracegraph.embed(7, reads=(X, 2 * X), at=at, out=V, host=np.add)
    np.testing.assert_array_equal(found, 3 * X)


@pytest.mark.parametrize(
    ("reference", "out", "row"),
    [
        (lambda x: x[:2], lambda x: x, "output 0: declared f64[4], returned f64[2]"),
        (lambda x: x > 0, lambda x: x, "output 0: declared f64[4], returned bool[4]"),
        (lambda x: (x, x), lambda x: x, "results: declared one array, returned a tuple of 2"),
        (lambda x: x, lambda x: (x, x), "results: declared a tuple of 2, returned one value"),
        (lambda x: (x,), lambda x: (x, x), "results: declared a tuple of 2, returned 1 results"),
    ],
)
@pytest.mark.parametrize("traced", [False, True])
def test_outputs_that_do_not_match_the_declaration(
    reference: Any, out: Any, row: str, traced: bool
) -> None:
    kernel = declared(reference, out=out)
    call = tracegraph.jit(lambda x: kernel(x), device="host") if traced else kernel
    with pytest.raises(errors.KernelResultError) as caught:
        call(X)
    for part in (
        "the reference of kernel",
        "(test_interop_misuse.py:",
        row,
        "change the reference",
    ):
        assert part in str(caught.value)
