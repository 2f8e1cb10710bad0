"""Kernels for Warp, whose users write them by hand. Importing this needs Warp."""

from typing import Any

import warp as wp

TILE = wp.constant(256)  # elements of a block
LARGE_TILE = wp.constant(4096)  # the same of large arrays
SIDE = wp.constant(32)  # of a square tile
ROWS = wp.constant(128)  # of one column that a thread adds up


@wp.kernel
def multiply_add(
    x: wp.array(dtype=Any), a: wp.array(dtype=Any), b: wp.array(dtype=Any), y: wp.array(dtype=Any)
):
    i = wp.tid()
    y[i] = x[i] * a[i] + b[i]


@wp.kernel
def twice_and_one(x: wp.array(dtype=Any), y: wp.array(dtype=Any)):
    i = wp.tid()
    y[i] = x[i] * type(x[i])(2.0) + type(x[i])(1.0)


@wp.kernel
def relax(x: wp.array(dtype=Any)):
    """X = x*0.99 + 0.5"""
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
def sum_and_scale(
    x: wp.array(dtype=Any), factor: wp.array(dtype=Any), sums: wp.array(dtype=Any), i: int
):
    """One tile a block: its sum added to the i-th of all, then scaled and stored."""
    block = wp.tid()
    tile = wp.tile_load(x, shape=TILE, offset=block * TILE)
    wp.tile_atomic_add(sums, wp.tile_sum(tile), offset=i)
    wp.tile_store(x, tile * factor[0], offset=block * TILE)


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


@wp.kernel
def add_sum(x: wp.array(dtype=Any), total: wp.array(dtype=Any)):
    """One tile a block: its sum added to the total."""
    block = wp.tid()
    tile = wp.tile_load(x, shape=TILE, offset=block * TILE)
    wp.tile_atomic_add(total, wp.tile_sum(tile), offset=0)


@wp.kernel
def is_positive(total: wp.array(dtype=Any), condition: wp.array(dtype=wp.int32)):
    condition[0] = wp.where(total[0] > type(total[0])(0.0), 1, 0)


@wp.kernel
def sine_scaled(x: wp.array(dtype=Any), y: wp.array(dtype=Any)):
    i = wp.tid()
    y[i] = wp.sin(x[i]) * type(x[i])(1.5)


@wp.kernel
def cosine_scaled(x: wp.array(dtype=Any), y: wp.array(dtype=Any)):
    i = wp.tid()
    y[i] = wp.cos(x[i]) * x[i] - type(x[i])(1.0)


@wp.kernel
def diffuse(before: wp.array2d(dtype=Any), after: wp.array2d(dtype=Any)):
    """A step of the heat equation at rate 0.1."""
    row, column = wp.tid()
    rows, columns = before.shape[0], before.shape[1]
    up, down = wp.where(row > 0, row, rows) - 1, wp.where(row + 1 < rows, row + 1, 0)
    left = wp.where(column > 0, column, columns) - 1
    right = wp.where(column + 1 < columns, column + 1, 0)
    here = before[row, column]
    around = before[up, column] + before[down, column] + before[row, left] + before[row, right]
    after[row, column] = here + type(here)(0.1) * (around - type(here)(4.0) * here)


@wp.kernel
def escape(
    x: wp.array2d(dtype=Any),
    y: wp.array2d(dtype=Any),
    re: wp.array2d(dtype=Any),
    im: wp.array2d(dtype=Any),
    counts: wp.array2d(dtype=wp.int32),
    inside: wp.array(dtype=wp.int32),
):
    """A step of Mandelbrot's iteration, and whether any point has not escaped."""
    row, column = wp.tid()
    a, b = re[row, column], im[row, column]
    two, four = type(a)(2.0), type(a)(4.0)
    if a * a + b * b <= four:
        next_re = a * a - b * b + x[row, column]
        next_im = two * a * b + y[row, column]
        re[row, column] = next_re
        im[row, column] = next_im
        counts[row, column] = counts[row, column] + 1
        if next_re * next_re + next_im * next_im <= four:
            inside[0] = 1


@wp.kernel
def any_inside(
    inside: wp.array(dtype=wp.int32),
    step: wp.array(dtype=wp.int32),
    most: int,
    condition: wp.array(dtype=wp.int32),
):
    """Count a step, decide whether another follows, and clear what it decides on."""
    step[0] = step[0] + 1
    condition[0] = wp.where(step[0] < most, inside[0], 0)
    inside[0] = 0


@wp.kernel
def sine_and_square(x: wp.array(dtype=Any), y: wp.array(dtype=Any)):
    i = wp.tid()
    y[i] = wp.sin(x[i]) * type(x[i])(1.5) + x[i] * x[i]


@wp.kernel
def add_squares(x: wp.array(dtype=Any), total: wp.array(dtype=Any)):
    """One large tile a block: the sum of its squares added to the total."""
    block = wp.tid()
    tile = wp.tile_load(x, shape=LARGE_TILE, offset=block * LARGE_TILE)
    wp.tile_atomic_add(total, wp.tile_sum(wp.tile_map(wp.mul, tile, tile)), offset=0)


def softmax_of(columns: int):
    """The kernel for rows of a number of columns: one row a block."""

    @wp.kernel(module="unique")
    def softmax(x: wp.array2d(dtype=Any), y: wp.array2d(dtype=Any)):
        row = wp.tid()
        tile = wp.tile_load(x[row], shape=(columns,))
        most = wp.tile_broadcast(wp.tile_max(tile), shape=(columns,))
        powers = wp.tile_map(wp.exp, tile - most)
        total = wp.tile_broadcast(wp.tile_sum(powers), shape=(columns,))
        wp.tile_store(y[row], wp.tile_map(wp.div, powers, total))

    return softmax


@wp.kernel
def add_rows(x: wp.array2d(dtype=Any), sums: wp.array(dtype=Any)):
    """One column a thread: the sum of some of its rows added to its total."""
    part, column = wp.tid()
    total = x[part * ROWS, column]
    for row in range(part * ROWS + 1, wp.min((part + 1) * ROWS, x.shape[0])):
        total += x[row, column]
    wp.atomic_add(sums, column, total)


@wp.kernel
def transpose_plus_one(x: wp.array2d(dtype=Any), y: wp.array2d(dtype=Any)):
    i, j = wp.tid()
    tile = wp.tile_load(x, shape=(SIDE, SIDE), offset=(i * SIDE, j * SIDE), storage="shared")
    ones = wp.tile_ones(shape=(SIDE, SIDE), dtype=x.dtype)
    wp.tile_store(y, wp.tile_transpose(tile) + ones, offset=(j * SIDE, i * SIDE))
