"""Counter-based random bits: Threefry, with two words of 32 bits and 20 rounds.

Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC11).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracegraph.ir.derivative import Constant
from tracegraph.ir.op import Elementwise, Op, Sample, register
from tracegraph.ir.types import ArrayType, broadcast_shapes
from tracegraph.ops.elementwise import listed, quiet, texts

Array = np.ndarray[Any, Any]

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = np.uint32(0x1BD11BDA)
_WORD, _PAIR = np.dtype(np.uint32), np.dtype(np.uint64)

_COST = 64
"""About as many integer instructions."""

_BLOCK = 1 << 14
"""Counters that the reference takes at a time: its five arrays of words then stay in the cache."""


def _type(first: ArrayType, second: ArrayType, counter: ArrayType) -> ArrayType:
    types = (first, second, counter)
    if [t.dtype for t in types] != [_WORD, _WORD, _PAIR]:
        raise TypeError(f"threefry takes a key of two u32 and a u64 counter, got {listed(types)}")
    return ArrayType(_PAIR, broadcast_shapes(*(t.shape for t in types)))


def _rounds(first: Array, second: Array, counter: Array) -> Array:
    keys = (first, second, first ^ second ^ _PARITY)
    x = (counter >> np.uint64(32)).astype(_WORD) + first
    y = counter.astype(_WORD) + second
    left = np.empty_like(y)
    for part in range(5):
        for bits in _ROTATIONS[part % 2]:
            np.add(x, y, out=x)
            np.left_shift(y, np.uint32(bits), out=left)
            np.right_shift(y, np.uint32(32 - bits), out=y)
            np.bitwise_or(y, left, out=y)
            np.bitwise_xor(y, x, out=y)
        np.add(x, keys[(part + 1) % 3], out=x)
        np.add(y, keys[(part + 2) % 3] + np.uint32(part + 1), out=y)
    return np.asarray(x.astype(_PAIR) << np.uint64(32) | y)


def _threefry(first: Any, second: Any, counter: Any) -> Any:
    shape = np.broadcast_shapes(np.shape(first), np.shape(second), np.shape(counter))
    if np.size(first) == np.size(second) == 1:
        first, second = np.reshape(first, 1), np.reshape(second, 1)
        flat = np.reshape(counter, -1)
        found = np.empty(flat.shape, _PAIR)
        for start in range(0, flat.size, _BLOCK):
            block = slice(start, start + _BLOCK)
            found[block] = _rounds(first, second, flat[block])
    else:
        wide = [np.broadcast_to(x, shape).reshape(-1) for x in (first, second, counter)]
        found = _rounds(*wide)
    return found.reshape(shape)[()]


def _samples() -> list[Sample]:
    words = np.array([0, 1, 0xFFFFFFFF, 0x13198A2E, 0x03707344], _WORD)
    counters = np.array([0, 1, 2**32 - 1, 2**32, 2**64 - 1, 0x243F6A8885A308D3], _PAIR)
    alone = Sample((words[3], words[4], counters))
    return [alone, Sample((words[:, None, None], words[:, None], counters))]


threefry = register(
    Op(
        "threefry",
        "The two words that Threefry makes of a key and a counter, as one number.",
        _type,
        quiet(_threefry),
        Elementwise(texts(u="tg_threefry({0}, {1}, {2})"), _COST),
        _samples,
        derivative=Constant(),
    )
)
