"""The compiled functions of ops, combiners and casts give what NumPy gives."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest

pytest.importorskip("llvmlite", reason="there is no wheel of llvmlite for this system")

from lowering.native.library import load
from lowering.native.library.source import functions
from lowering.native.library.symbols import Function, cast, combiner, elementwise
from tests.emulation.elementwise_source import cases
from tests.helpers.agreement import assert_agrees, check
from tests.unit.native.library.compiled_functions import Compiled
from tracegraph.dtypes import SHORT_NAMES, is_half
from tracegraph.ir import combiners
from tracegraph.ir.op import Combiner, Op
from tracegraph.ir.types import type_of

NDArray = np.ndarray[Any, Any]
CASES = list(cases())


def function_of(op: Op, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Function:
    types = [type_of(x) for x in operands]
    result = op.result_types(types, attrs)[0].dtype
    found = elementwise(op, attrs, [t.dtype for t in types], result)
    assert found is not None, f"op {op.name} of {types} has no function"
    return found


@cache
def compiled(speed: int = 0) -> tuple[Compiled, Mapping[str, int]]:
    """All functions of the library, not optimized unless asked for: that takes least time."""
    every = [function for function in functions() if load.has(function.name)]
    return Compiled(every, speed), {function.name: n for n, function in enumerate(every)}


def run(function: Function, *operands: Any, speed: int = 0) -> NDArray:
    machine_code, numbers = compiled(speed)
    spread = np.broadcast_arrays(*operands)
    return machine_code(numbers[function.name], *spread)


@pytest.mark.parametrize("name", sorted({case.op.name for case in CASES}))
def test_functions_of_ops_compute_what_references_do(name: str) -> None:
    def applied(op: Op, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
        return run(function_of(op, operands, attrs), *operands)

    for case in CASES:
        if case.op.name == name:
            check(case.op, case.sample, applied)


@pytest.mark.soak
@pytest.mark.parametrize("name", sorted({case.op.name for case in CASES}))
def test_so_do_vectorized_functions(name: str) -> None:
    def applied(op: Op, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
        repeated = [np.broadcast_to(x, (9, *np.shape(x))) for x in np.broadcast_arrays(*operands)]
        result = run(function_of(op, operands, attrs), *repeated, speed=2)
        assert all(row.tobytes() == result[0].tobytes() for row in result)
        return result[0]

    for case in CASES:
        if case.op.name == name:
            check(case.op, case.sample, applied)


def values(dtype: np.dtype[Any]) -> NDArray:
    """Numbers of both signs that all dtypes hold or wrap, and zeros, in a dtype."""
    whole = np.array([0, 1, 2, 3, 5, 7, 31, 100, 127], np.int64)
    if dtype.kind in "bu":
        return whole.astype(dtype)
    signed = np.concatenate([whole, -whole])
    if dtype.kind == "c":
        return (signed + 0.25j * signed[::-1]).astype(dtype)
    return (signed * (1.375 if dtype.kind in "fV" else 1)).astype(dtype)


@pytest.mark.parametrize("dtype", SHORT_NAMES, ids=str)
def test_casts_are_those_of_astype(dtype: np.dtype[Any]) -> None:
    source = values(dtype)
    for target in SHORT_NAMES:
        if dtype.kind in "fVc" and target.kind == "u":
            source = np.abs(source) if dtype.kind != "c" else source * 0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", np.exceptions.ComplexWarning)
            expected = source.astype(target)
        assert_agrees(run(cast(dtype, target), source), expected, 0)


@pytest.mark.parametrize("source", [np.float32, np.float64])
def test_float16_is_rounded_once(source: type) -> None:
    """Halfway between two neighbours, and just beside, where double rounding would show."""
    bits = np.arange(0x7BFF, dtype=np.uint16)
    low, high = bits.view(np.float16), (bits + np.uint16(1)).view(np.float16)
    middle = (low.astype(np.float64) + high.astype(np.float64)) / 2
    x = np.concatenate([np.nextafter(middle, 0), middle, np.nextafter(middle, np.inf)])
    ends = [0.0, 5e-324, 1e-8, 65519.99, 65520.0, 1e300, np.inf, np.nan]
    with np.errstate(all="ignore"):
        x = np.concatenate([x, -x, ends]).astype(source)
        expected = x.astype(np.float16)
    assert_agrees(run(cast(np.dtype(source), np.dtype(np.float16)), x), expected, 0)


@pytest.mark.parametrize("target", ["int8", "int16", "int32", "int64", "uint8", "uint32", "uint64"])
def test_conversions_to_integers_saturate_or_wrap(target: str) -> None:
    """As on a GPU, and alike on every processor: narrow types wrap within 32 bits."""
    dtype = np.dtype(target)
    x = np.array([3.99, -3.99, 1e30, -1e30, np.inf, -np.inf, np.nan, 300.0])
    info = np.iinfo(dtype if dtype.itemsize >= 4 else np.int32)
    if target == "uint32":
        info = np.iinfo(np.int64)
    limits = [3, -3, info.max, info.min, info.max, info.min, 0, 300]
    whole = np.array([int(v) % (1 << 64) for v in limits], np.uint64)
    if target == "uint64":  # negative numbers wrap, down to the least integer of 64 bits
        whole[[3, 5]] = 1 << 63
    got = run(cast(np.dtype(np.float64), dtype), x)
    np.testing.assert_array_equal(got, whole.astype(dtype))


COMBINERS = [value for value in vars(combiners).values() if isinstance(value, Combiner)]


@pytest.mark.parametrize("how", COMBINERS, ids=lambda how: how.name)
def test_combiners_are_their_ufuncs(how: Combiner) -> None:
    tried = 0
    for dtype in SHORT_NAMES:
        function = combiner(how, dtype)
        if function is None or function.arguments[0] != dtype:
            assert function is None or is_half(dtype)
            continue
        x, y = (np.array(v) for v in zip(*product(values(dtype), repeat=2), strict=True))
        with np.errstate(all="ignore"):
            expected = how.ufunc(x, y).astype(dtype)
        ulps = {"f": 2, "c": 2}.get(dtype.kind, 0)
        assert_agrees(run(function, x, y), expected, ulps, signs=False)
        tried += 1
    assert tried


def test_an_unknown_function_is_named() -> None:
    with pytest.raises(KeyError, match="tgo_unknown"):
        load.definitions(["tgo_unknown"])
