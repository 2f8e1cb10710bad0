"""Views and rearrangements, which fuse into the kernels that read them."""

from __future__ import annotations

import numpy as np

from tests.corpus.case import program, whole


@program(whole(4, 6), whole(6, 4, seed=1))
def transpose_meets_reshape(x, y):
    return x.T + y, x.reshape(6, 4) * y, x.reshape(2, 2, 6).transpose(2, 0, 1), (x.T).ravel()


@program(whole(5, 8))
def slices_with_steps(x):
    return x[1:4, ::2], x[::-1, 1::3] * 2, x[-2], x[:, -1] - x[:, 0], x[4:1:-2, ::-1]


@program(whole(4, 5))
def flip_and_roll(x):
    return (
        np.flip(x),
        np.flip(x, 1) + x,
        np.roll(x, 2),
        np.roll(x, (1, -2), (0, 1)),
        np.roll(x, 7, 1),
    )


@program(whole(4, 3), whole(2, 3, seed=1))
def pad_and_join(x, y):
    return (
        np.pad(x, ((1, 2), (0, 3))),
        np.pad(x, 1, constant_values=7) * 2,
        np.concatenate([x, y, x * 2]),
        np.stack([x, -x], axis=1),
        np.vstack([y, x]),
        np.hstack([x, x]),
    )


@program(whole(4, 3), ulps=4)
def pad_in_all_modes(x):
    widths = ((2, 5), (0, 4))
    return (
        np.pad(x, widths, "linear_ramp", end_values=((1, 2), (3, -4))),
        np.pad(x, widths, "mean", stat_length=2) + np.pad(x, widths, "minimum"),
        np.pad(x, widths, "median") - np.pad(x * 2, widths, "maximum", stat_length=(1, 3)),
        np.pad(x, widths, "reflect", reflect_type="odd"),
        np.pad(x, widths, "symmetric", reflect_type="odd") * np.pad(x, widths, "wrap"),
        np.pad(x, 1, constant_values=((1, 2), (x[0, 0], x[3, 2]))),
    )


@program(whole(4, 3), np.array(-2), np.array([3, 0, 3]))
def insert_and_delete_where_numbers_say(x, k, several):
    return (
        np.insert(x, k, [7, 8, 9], axis=0),
        np.insert(x, k, x[:, 1], axis=1) * 2,
        np.insert(x, several, x[:3], axis=0),
        np.insert(x, several, -1),
        np.delete(x, k, axis=1),
        np.delete(x, k),
    )


@program(whole(4, 3))
def laid_out_by_columns(x):
    columns = np.zeros_like(x, order="F")
    columns[1] = x[2]
    return columns.ravel("K"), np.copy(x + 1, order="F").ravel("K"), columns @ x.T


@program(whole(2, 3))
def tile_and_repeat(x):
    return (
        np.tile(x, (2, 3)),
        np.repeat(x, 2, axis=1),
        np.repeat(x, 3),
        np.broadcast_to(x, (4, 2, 3)),
    )


@program(whole(3, 1, 4))
def axes_come_and_go(x):
    return (
        np.squeeze(x),
        np.expand_dims(x, 0),
        x[:, 0, None],
        np.swapaxes(x, 0, 2),
        np.moveaxis(x, 0, -1),
    )


@program(whole(6, 6))
def view_of_view_of_view(x):
    return x.T[1:5:2].reshape(-1)[::-1].reshape(3, 4)[:, 1:] + 1


@program(whole(10))
def stencil(x):
    return x[:-2] + 2 * x[1:-1] + x[2:], np.roll(x, 1) - np.roll(x, -1)


@program(whole(5))
def joined_parts_are_read_back(x):
    y = np.concatenate([x * 2, x[::-1]])
    return y[3:7], np.split(y, 2), np.roll(y, 3)[::2]


@program(whole(0, 3), whole(3))
def empty_arrays(x, y):
    return x + y, x.sum(), x.sum(axis=0), np.concatenate([x, y[None]]), x.reshape(3, 0), y[3:] * 2


@program(whole(1, 1), whole(1, seed=1))
def arrays_of_one_element(x, y):
    return x + y, x.sum(axis=0), x @ y, x.reshape(()), np.broadcast_to(y, (3, 1)), x[0, 0]


@program(whole(4))
def created_inside(x):
    return (
        np.zeros((2, 4)) + x,
        np.ones_like(x),
        np.full_like(x, 7),
        np.arange(4) * x,
        np.eye(4) * x,
        x + np.linspace(0, 3, 4),
    )


@program(whole(3, 4))
def triangles_and_diagonals(x):
    return np.tril(x), np.triu(x, 1), np.diagonal(x), np.trace(x)
