"""Expressions of functions that find, choose, place and rearrange elements, as NumPy has them.

The arguments are those of test_numpy_functions: `b` is a mask of the shape of `x`.
"""

from __future__ import annotations

from tests.helpers.numpy_agreement import expressions

FINDING = expressions("""
    xp.nonzero(np.array([[0, 2], [3, 0]])) + (x,);
    (xp.flatnonzero(np.arange(3)), xp.argwhere(np.eye(2)), x); xp.where(np.array([0, 2, 3])) + (x,);
    xp.compress(np.array([True, False, True]), x, 0); xp.compress([0, 1, 0, 2], x, axis=-1);
    xp.compress([0, 1, 0, 2, 1], x); xp.compress([False], e, 1);
    x.compress([True, False, True], axis=0); xp.extract(np.eye(3, 4), x); xp.extract([0, 3], i);
    x[np.eye(3, 4, dtype=bool)]
""")

CHOOSING = expressions("""
    xp.choose(i % 3, [x, v, 2]); xp.choose(i % 3, [np.int8(4), i, 7]); xp.choose(b, [c, x]);
    xp.choose(i % 2, z); xp.choose(i[0] % 3, x); xp.choose([0, 2, 1, 0], x);
    xp.choose(i, [x, -x, s], mode='wrap'); xp.choose(i, [x, -x, n], mode='clip');
    xp.choose(i[0], x, mode='clip'); xp.choose(e.astype(int), [1, 2.5]); xp.choose(b, (h, 1));
    i.choose((1, 2, 3), mode='clip'); xp.piecewise(s, s < 0, [1, 2]);
    xp.piecewise(x, [x < 0, x >= 1], [lambda v: -v, 5, lambda v: v + 1]);
    xp.piecewise(x, [x < 0], [np.sin]);
    xp.piecewise(i, [i < 0, i > 2], [7.9, lambda v, k: v * k], 2);
    xp.piecewise(x, np.eye(3, 4, dtype=bool)[None], [lambda v: v + len(v), 0.5]);
    xp.piecewise(v, v > 0, [1, -1]);
    xp.piecewise(v, [True, False, True, False], [lambda v: v * 2, -1]);
    xp.piecewise(s, [s < 0, s >= 1], [lambda v: -v, lambda v: v * 3]);
    xp.piecewise(x, [x[:, 0] > 0], [3, lambda v: v]); xp.piecewise(e, [e > 0], [1, 2])
""")
REPEATING = expressions("""
    xp.resize(x, (5, 4)); xp.resize(x, (2, 3)); xp.resize(v, 9); xp.resize(s, (2, 2));
    xp.resize(e, (2, 2)); xp.resize(i, 0)
""")
EDITING = expressions("""
    xp.insert(x, 1, 7.5); xp.insert(x, 1, [1, 2, 3, 4], axis=0); xp.insert(x, -1, w, axis=1);
    xp.insert(x, 4, w, 1); xp.insert(x, [1], w[:, None], axis=1);
    xp.insert(x, [1, 1, 3], 9, axis=1); xp.insert(x, [0, 2], y.T, axis=0);
    xp.insert(x, slice(None, None, 2), v[:2], axis=1); xp.insert(i, [2, 0], [30.0, 1.5]);
    xp.insert(z, 1, z[:, 0], axis=1); xp.insert(z, [1, 2], z[:, :2], axis=1);
    xp.insert(z, 0, x[None], axis=0); xp.insert(v, [1, 3], [[1, 2]]);
    xp.insert(v, np.array([True, False, True, False]), [1, 2]); xp.insert(v, [], 1);
    xp.insert(v, 2, []); xp.insert(e, 0, [1, 2, 3], axis=0); xp.insert(np.arange(3), 1, s);
    xp.insert(v, [0, 4], v[:2]); xp.delete(x, 1); xp.delete(x, -1, axis=1);
    xp.delete(x, [0, 2, 2], axis=1); xp.delete(x, slice(None, None, 2), 0);
    xp.delete(z, np.array([True, False, True]), axis=1); xp.delete(i, []);
    xp.delete(e, [0, 1], axis=1); xp.block([[x, x], [v, v]]); xp.block([x, w[:, None]]);
    xp.block([s, v, n]); xp.block([[s, n], [3, 4]]); xp.block([[[z]], [[z]]]);
    xp.block([z, z[:, :, :1]]); xp.block(x); xp.block([[v, 1], [2, i[0]]])
""")
GRIDS = expressions("""
    xp.unravel_index(i * i % 24, (2, 3, 4)); xp.unravel_index(i * i % 24, (2, 3, 4), order='F');
    xp.unravel_index(xp.argmax(x), (3, 4)); xp.unravel_index([[3, 1]], (2, 2)) + (x,);
    xp.unravel_index(i[0] * 0, 5); xp.unravel_index(e.astype(int), (2, 3));
    xp.ravel_multi_index((i % 3, i % 4), (3, 4));
    xp.ravel_multi_index((i % 3, i % 4), (3, 4), order='F');
    xp.unravel_index(b, (2, 3)) + (xp.ravel_multi_index((b, b), (3, 4)),);
    xp.ravel_multi_index((i, i), (3, 4), mode='wrap');
    xp.ravel_multi_index((i, i, 1), (3, 4, 2), mode=('clip', 'wrap', 'raise'));
    xp.ravel_multi_index(i % 3, (3, 3, 4), mode='clip');
    xp.ravel_multi_index((i % 3, i[0] % 4), (3, 4)); xp.ravel_multi_index((e.astype(int),), (4,));
    x[xp.ix_(i[0] % 3, [0, 2])]; xp.ix_(v, w, [True, False, True]); xp.ix_(i[0], []);
    x[np.mgrid[0:3, 0:2][0], np.ogrid[0:3, 0:2][1]]
""")
COUNTING = expressions("""
    xp.bincount(i.ravel() % 5, minlength=9); xp.bincount(b[0], minlength=2);
    xp.bincount(b[0].astype(np.uint64), minlength=2); xp.bincount(i[0] % 3, weights=v, minlength=4);
    xp.bincount(i[0] % 3, i[1], 3); xp.bincount(i[0] % 3, b[0], 3);
    xp.bincount(e.astype(int).ravel()); xp.bincount(e.astype(int).ravel(), minlength=3);
    xp.bincount(np.array([0, 3]), weights=v[:2]); xp.bincount(np.array([0, 3]), v[:2], minlength=9)
""")

ROLLING = expressions("""
    xp.roll(x, i[0, 0]); xp.roll(x, i[0, 0], 1); xp.roll(x, i[0, :2], (0, 1));
    xp.roll(x, i[0, 0], (0, 1)); xp.roll(z, (i[0, 0], 1, i[0, 1]), (0, 2, 2));
    xp.roll(x, i[0, :2], 0); xp.roll(i, i[1]); xp.roll(v, b[0, 0]); xp.roll(e, i[0, 0], 0);
    xp.roll(e, i[0, 0])
""")
BUILDERS = [
    "xp.r_[v, 0, w] if xp is not np else np.concatenate([v, [0], w])",
    "xp.r_[s, n, 2.5] if xp is not np else np.stack([s, s * 0 + n, s * 0 + 2.5])",
    "xp.r_[i[0], n] if xp is not np else np.append(i[0], i[0, :1] * 0 + n)",
    "xp.r_[0:3, v, 0:1:3j] if xp is not np else np.concatenate([np.arange(3), v, [0, 0.5, 1]])",
    "xp.r_[0:s:3j] if xp is not np else np.linspace(0, s, 3)",
    "xp.r_['-1', x, x] if xp is not np else np.hstack([x, x])",
    "xp.r_['0,2', v, v] if xp is not np else np.stack([v, v])",
    "xp.r_['0,2,0', v, v] if xp is not np else np.concatenate([v, v])[:, None]",
    "xp.r_['1,2,0', v, v] if xp is not np else np.stack([v, v], 1)",
    "xp.r_['0,3,1', x, x] if xp is not np else np.stack([x, x])",
    "xp.c_[v, v, x.T] if xp is not np else np.column_stack([v, v, x.T])",
    "xp.c_[x, x] if xp is not np else np.hstack([x, x])",
]

TABLES = [*FINDING, *CHOOSING, *REPEATING, *EDITING, *GRIDS, *COUNTING, *ROLLING, *BUILDERS]
