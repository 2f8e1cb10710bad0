"""Expressions of functions that find, choose, place and rearrange elements, as NumPy has them.

The arguments are those of test_numpy_functions: `b` is a mask of the shape of `x`.
"""

from __future__ import annotations

FINDING = [
    "xp.nonzero(np.array([[0, 2], [3, 0]])) + (x,)",
    "(xp.flatnonzero(np.arange(3)), xp.argwhere(np.eye(2)), x)",
    "xp.where(np.array([0, 2, 3])) + (x,)",
    "xp.compress(np.array([True, False, True]), x, 0)",
    "xp.compress([0, 1, 0, 2], x, axis=-1)",
    "xp.compress([0, 1, 0, 2, 1], x)",
    "xp.compress([False], e, 1)",
    "x.compress([True, False, True], axis=0)",
    "xp.extract(np.eye(3, 4), x)",
    "xp.extract([0, 3], i)",
    "x[np.eye(3, 4, dtype=bool)]",
]

TABLES = [*FINDING]
