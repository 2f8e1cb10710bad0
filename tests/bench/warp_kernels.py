"""Kernels for Warp, whose users write them by hand. Importing this needs Warp."""

from typing import Any

import warp as wp

TILE = wp.constant(256)


@wp.kernel
def multiply_add(
    x: wp.array(dtype=Any), a: wp.array(dtype=Any), b: wp.array(dtype=Any), y: wp.array(dtype=Any)
):
    i = wp.tid()
    y[i] = x[i] * a[i] + b[i]


@wp.kernel
def relax(x: wp.array(dtype=Any)):
    """x = x*0.99 + 0.5"""
    i = wp.tid()
    value = x[i]
    x[i] = value * type(value)(0.99) + type(value)(0.5)


@wp.kernel
def scale_and_sum(x: wp.array(dtype=Any), factor: wp.array(dtype=Any), total: wp.array(dtype=Any)):
    """One tile a block: scaled, stored, and its sum added to the total."""
    block = wp.tid()
    tile = wp.tile_load(x, shape=TILE, offset=block * TILE) * factor[0]
    wp.tile_store(x, tile, offset=block * TILE)
    wp.tile_atomic_add(total, wp.tile_sum(tile), offset=0)


@wp.kernel
def still_above(
    total: wp.array(dtype=Any),
    threshold: wp.array(dtype=Any),
    steps: wp.array(dtype=wp.int64),
    condition: wp.array(dtype=wp.int32),
):
    """Decide on the total, clear it for the next step, and count steps."""
    condition[0] = wp.where(total[0] > threshold[0], 1, 0)
    total[0] = total[0] - total[0]
    steps[0] = steps[0] + wp.int64(1)


@wp.kernel
def start(counter: wp.array(dtype=wp.int32), most: int, condition: wp.array(dtype=wp.int32)):
    counter[0] = 0
    condition[0] = wp.where(most > 0, 1, 0)


@wp.kernel
def count(counter: wp.array(dtype=wp.int32), most: int, condition: wp.array(dtype=wp.int32)):
    counter[0] = counter[0] + 1
    condition[0] = wp.where(counter[0] < most, 1, 0)
