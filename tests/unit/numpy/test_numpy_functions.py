"""Functions of tracegraph.numpy over whole arrays, traced, against NumPy: expressions in a table.

`x` has shape (3, 4), `y` (4, 2), `v` (4,), `w` (3,), `z` (2, 3, 4), `s` (), `n` is a Python number;
`i`, `b`, `c`, `h` are (3, 4) of int8, bool, complex64 and float16; `p` holds NaNs.
"""

from __future__ import annotations

from types import FunctionType
from typing import Any

import numpy as np
import pytest

import tracegraph.numpy as tnp
from tests.cases import binning as binning_cases
from tests.cases import linear_algebra as linear_algebra_cases
from tests.cases import local as local_cases
from tests.cases import numbers as number_cases
from tests.cases import selecting as selecting_cases
from tests.cases import sorting_expressions
from tests.helpers.numpy_agreement import assert_expression_equals_numpy, expressions, functions_in
from tests.helpers.numpy_arguments import ARGUMENTS
from tests.helpers.traced import assert_traced_equals_eager, trace
from tracegraph import errors
from tracegraph.ir import interpret
from tracegraph.numpy import elementwise, ufuncs

REDUCTIONS = (
    [
        f"xp.{name}({x}{axis})"
        for name in ("sum", "prod", "mean", "var", "std", "any", "all", "count_nonzero")
        for x in ("x", "i", "b", "c", "h", "s", "e")
        for axis in ("", ", axis=0", ", axis=-1, keepdims=True", ", axis=(0, 1)", ", axis=()")
        if not (x == "s" and "=0" in axis + "=0" and axis)
    ]
    + [
        f"xp.{name}({x}{axis})"
        for name in ("min", "max", "amin", "amax", "ptp", "argmin", "argmax", "nanmin", "nanmax")
        for x in ("x", "i", "p", "h")
        for axis in ("", ", axis=0", ", axis=-1, keepdims=True")
    ]
    + [
        *expressions("""
        xp.sum(x, axis=(-1, 0)); xp.sum(i, dtype=np.int16); xp.sum(x, where=b);
        xp.sum(x, 0, initial=3); xp.prod(i, 1, where=b, initial=2);
        xp.min(x, 1, where=b, initial=5); xp.max(x, initial=0); xp.max(e, 0, initial=0);
        xp.any(x, where=b); xp.all(x > 0, 1, where=b); xp.mean(x, 1, where=b);
        xp.mean(x, 1, where=np.array([True, False, True, True]));
        xp.std(x, 0, ddof=1, where=np.array([[True], [False], [True]]));
        xp.mean(i, dtype=np.float32); xp.var(x, 0, ddof=1); xp.var(x, 0, correction=1);
        xp.std(x, where=b);
        x.sum(0) + x.mean(0) + x.max(0) + x.min(0) + x.std(0) + x.var(0) + x.prod(0);
        (x.any(), x.all(), x.argmin(1), x.argmax(), x.cumsum(0), x.cumprod(1)); xp.average(x, 0);
        xp.average(x, 1, weights=v); xp.average(x, weights=abs(x));
        xp.average(i * 9, weights=i % 3 + 60); xp.average(x.astype(np.float32), weights=b);
        xp.average(z, (2, 0), weights=y[:, :2], keepdims=True); xp.argmax(s, keepdims=True);
        xp.cumsum(x); xp.cumsum(i, 1); xp.cumprod(b, axis=0); xp.cumsum(x, -1, dtype=np.float32);
        xp.nansum(p, 1); xp.nanprod(p, 0); xp.nanmean(p, 1); xp.nanvar(p, 1);
        xp.nanstd(p, 0, ddof=1); xp.nanvar(p, 1, ddof=2); xp.nanstd(i, ddof=1);
        xp.allclose(x, x + 1e-9); xp.array_equal(x, x); xp.array_equal(p, p, equal_nan=True);
        xp.trapezoid(x, dx=0.5); xp.trapezoid(x, v); xp.trapezoid(x, axis=0)
        """),
    ]
)
SHAPES = expressions("""
    xp.shape(x) + (xp.ndim(z), xp.size(x), xp.size(x, 1));
    [x.astype(xp.result_type(*a)) for a in ((i, y, n), (i, np.int16), (s, 1.5))];
    (xp.iscomplexobj(c), xp.isrealobj(x), xp.iscomplexobj(n)); xp.reshape(x, (2, -1));
    xp.reshape(x, 12); x.reshape(4, 3); x.reshape((2, 2, -1)); xp.reshape(e, (3, 0)); xp.ravel(z);
    x.T.ravel(); x.flatten(); xp.transpose(z); xp.transpose(z, (1, -1, 0)); z.transpose(2, 0, 1);
    z.transpose(); z.mT; x.T; xp.permute_dims(z, (2, 1, 0)); xp.matrix_transpose(z);
    xp.swapaxes(z, 0, -1); z.swapaxes(0, 1); xp.moveaxis(z, 0, -1); xp.moveaxis(z, (0, 1), (-1, 0));
    xp.rollaxis(z, 2); xp.rollaxis(z, 0, 3); xp.broadcast_to(v, (3, 4)); xp.broadcast_to(n, (3,));
    xp.broadcast_to(s, 3); xp.broadcast_arrays(v, x, s); xp.expand_dims(x, 1);
    xp.expand_dims(x, (0, -1)); xp.squeeze(x[None]); xp.squeeze(x[None, :, None], 0);
    x[:, None].squeeze(axis=1); xp.atleast_1d(s, v); xp.atleast_2d(s, v, z);
    xp.atleast_3d(s, v, x, z); xp.flip(x); xp.flip(x, 1); xp.flip(z, (0, -1)); xp.flip(e);
    xp.fliplr(x); xp.flipud(x); [xp.rot90(x, k) for k in range(-1, 5)]; xp.rot90(z, axes=(1, 2));
    xp.roll(x, 5); xp.roll(x, -1, 0); xp.roll(x, (1, 2), (0, 1)); xp.roll(x, 1, (0, 1));
    xp.roll(x, (1, 2), (0, 0)); xp.split(x, 2, axis=1); xp.split(x, [1, 2]); xp.array_split(v, 3);
    xp.hsplit(x, 2) + xp.vsplit(x, 3) + xp.dsplit(z, 2); xp.unstack(z, axis=1); list(x); len(x)
""")
JOINING = expressions("""
    xp.concatenate([x, i]); xp.concatenate((x, x[:, :1]), axis=-1);
    xp.concatenate([x, v], axis=None); xp.concatenate([x, c], dtype=np.complex128);
    xp.concat([v, w]); xp.stack([v, x[0], x[1]], axis=1); xp.stack([s, n, 2.5]); xp.stack(x);
    xp.hstack([v, w]); xp.hstack([x, x]); xp.vstack([v, x]); xp.dstack([x, i]);
    xp.column_stack([x, w]); xp.append(x, v); xp.append(x, x, axis=0); xp.tile(x, 2);
    xp.tile(v, (3, 1, 2)); xp.tile(z, (2, 1)); xp.repeat(x, 2); xp.repeat(x, 3, axis=1);
    xp.repeat(x, [1, 0, 2], axis=0); x.repeat(2, 0); xp.pad(x, 1);
    xp.pad(x, ((1, 2), (0, 3)), constant_values=7); xp.pad(i, (2, 0), mode='edge');
    xp.pad(x, 5, mode='wrap'); xp.pad(x, 2, mode='reflect');
    xp.pad(x, ((1, 1), (5, 0)), mode='symmetric'); xp.pad(x, {1: (1, 2)}); xp.meshgrid(v, w);
    xp.meshgrid(v, w, v, indexing='ij'); xp.meshgrid(v, w, sparse=True)
""")
CREATION = expressions("""
    xp.zeros(3) + s; x + xp.ones((3, 4), np.float32); xp.full((2, 3), 7, np.int16) * s;
    xp.full(3, s) if xp is not np else np.full_like(s, s, shape=3); xp.full_like(x, s);
    xp.full_like(i, 2.5); xp.full_like(x, n, dtype=bool, shape=(2, 2)); xp.zeros_like(i);
    xp.zeros_like(x, shape=5); xp.ones_like(x, dtype=np.int8); xp.empty_like(x) * 0;
    xp.empty(3).shape[0] * s; xp.asarray(v) + 1 if xp is not np else v + 1;
    xp.array([[s, 1], [2, s]]) if xp is not np else np.stack([s, 1, 2, s]).reshape(2, 2);
    xp.asanyarray(v) + xp.ascontiguousarray(v) if xp is not np else v + v; xp.copy(x); x.copy();
    xp.arange(5) * s; xp.arange(1, 9, 3) * n; xp.arange(5, 1, -1, dtype=np.int8) + i;
    xp.arange(0, 1, 0.25) + s; xp.arange(3.0) * n; xp.linspace(0, 1, 5) * s;
    xp.linspace(s, x[0], 7); xp.linspace(v, 2, 3, endpoint=False, axis=1);
    xp.linspace(n, 9, 3, dtype=int); xp.linspace(s, 2, 1); xp.linspace(s, 3, 5, retstep=True);
    xp.eye(4) @ v; xp.eye(3, 4, 1) + x; xp.identity(4) @ v; xp.tri(3, 4, -1) * x
""")
SELECTING = expressions("""
    xp.take(x, 5); xp.take(x, [0, -1], axis=1); xp.take(v, i, mode='wrap');
    xp.take(v, i, mode='clip'); x.take([[0, 1], [2, 3]]);
    xp.take_along_axis(x, xp.argmax(x, axis=1, keepdims=True), 1);
    xp.take_along_axis(x, xp.argmax(x, axis=0, keepdims=True), axis=0);
    xp.take_along_axis(x, np.array([3, 1]), axis=None); xp.select([x > 1, x > 0], [x, -x], 7);
    xp.select([i > 1, x > 0], [i, 2], False); xp.select([x > 1, x > 0], [h, i], np.uint8(3));
    xp.diagonal(x); xp.diagonal(z, 1, 1, 2); xp.diagonal(x, -1); xp.diagonal(x, 9); x.diagonal(2);
    xp.trace(x); xp.trace(i, 1); z.trace(axis1=1, axis2=2); xp.diag(v); xp.diag(v, -2);
    xp.diag(w, 1); xp.diag(x, 1); xp.diagflat(x); xp.tril(x); xp.tril(z, -1); xp.triu(i, 1);
    xp.tril(v); xp.triu(v, 1); xp.diff(x); xp.diff(x, 2, axis=0); xp.diff(b, axis=1);
    xp.diff(v, prepend=0, append=v[:2]); xp.diff(i)
""")
PRODUCTS = expressions("""
    x @ y; xp.matmul(x, v); v @ y; v @ v; z @ y; z @ x.T; z[:, None] @ z.mT; i @ i.T; b @ b.T;
    h @ h.T; c @ y; np.ones((2, 3)) @ x; xp.dot(x, v); xp.dot(z, x.T); x.dot(y); xp.dot(n, v);
    xp.dot(v, v); xp.dot(z, z.mT); xp.vdot(c, c); xp.vdot(x, i); xp.vdot(b, b); xp.inner(x, v);
    xp.inner(x, z); xp.inner(s, v); xp.outer(v, w); xp.outer(x, v); xp.vecdot(c, c);
    xp.vecdot(x, v); xp.vecdot(x, x, axis=0); xp.vecdot(b, b); xp.matvec(z, v); xp.vecmat(w, z);
    xp.vecmat(b[:, 0], b); xp.tensordot(x, y, 1); xp.tensordot(z, x, ([1, 2], [0, 1]));
    xp.tensordot(v, w, 0); xp.tensordot(x, z, axes=(1, 2)); xp.kron(x, y); xp.kron(v, x);
    xp.cross(x[:, 0], w); xp.cross(x, x[:, ::-1], axis=0); xp.cross(x.T, w);
    xp.einsum('ij,jk->ik', x, y); xp.einsum('ij,jk', x, y); xp.einsum('ij->ji', x);
    xp.einsum('ji', x); xp.einsum('ij->', x); xp.einsum('i,i', v, v); xp.einsum('i,j->ij', v, w);
    xp.einsum('ii->i', x[:, :3]); xp.einsum('ii', i[:, :3]); xp.einsum('bij,bij->b', z, z);
    xp.einsum('bij,bkj->bik', z, z); xp.einsum('...ij,jk->...ik', z, y); xp.einsum('...j->...', z);
    xp.einsum('...,...', v, z); xp.einsum('ij,jk,j->k', x, y, v); xp.einsum('ijj->i', z[:, :, :3]);
    xp.einsum('iji->j', z[:, :, :2]); xp.einsum('ij,ij->ij', x[:1], x); xp.einsum('ij,ij->i', i, i);
    xp.einsum(x, [0, 1], y, [1, 2], [0, 2]); xp.einsum(x, [0, 1], y, [1, 2]);
    xp.einsum('ij,kl->', x, y); xp.linalg.norm(x); xp.linalg.norm(i); xp.linalg.norm(c);
    xp.linalg.norm(x, axis=1); xp.linalg.norm(x, axis=(0, 1), keepdims=True);
    xp.linalg.norm(z, 'fro', axis=(0, 2));
    [xp.linalg.norm(v, k) for k in (0, 1, 2, 3, 0.5, np.inf, -np.inf)];
    [xp.linalg.norm(x, k) for k in ('fro', 1, -1, np.inf, -np.inf)];
    xp.linalg.norm(x, 1, axis=(1, 0), keepdims=True); xp.linalg.norm(x, 3, axis=0, keepdims=True);
    xp.linalg.vector_norm(x); xp.linalg.vector_norm(z, axis=(0, 2), keepdims=True, ord=1);
    xp.linalg.matrix_norm(z); xp.linalg.matrix_norm(z, ord=1, keepdims=True);
    [xp.linalg.matrix_power(z[:, :, :3], k) for k in (0, 1, 2, 3, 5)];
    xp.linalg.outer(v, w) + xp.linalg.matmul(x, x.T)[0, 0]; xp.linalg.tensordot(x, y, axes=1);
    xp.linalg.cross(x[:, :3], w); xp.linalg.vecdot(x, v); xp.linalg.trace(z); xp.linalg.diagonal(z);
    xp.linalg.matrix_transpose(z)
""")
TABLES = [*REDUCTIONS, *SHAPES, *JOINING, *CREATION, *SELECTING, *PRODUCTS, *selecting_cases.TABLES]


@pytest.mark.parametrize("expression", TABLES)
def test_expressions_equal_numpys(expression: str) -> None:
    assert_expression_equals_numpy(expression, ARGUMENTS)


def test_every_function_stands_in_a_table() -> None:
    mapping = {"apply_along_axis", "vectorize"}  # and these have test_numpy_mapping.py
    placing = {"copyto", "fill_diagonal", "place", "put", "put_along_axis", "putmask"}
    standard = {"can_cast", "cumulative_prod", "cumulative_sum", "finfo", "from_dlpack", "iinfo"}
    dtypes = {"common_type", "einsum_path"}  # these have test_numpy_binning.py
    standard |= {"unique_all", "unique_counts", "unique_inverse", "unique_values"}
    sets = {"unique", "union1d", "intersect1d", "setdiff1d", "setxor1d"}  # test_distinct.py
    elsewhere = placing | mapping | dtypes | sets | standard  # the last have test_array_api.py
    elsewhere |= {"asfortranarray"}  # which has test_function_arguments.py
    tables = [*TABLES, *local_cases.TABLES, *number_cases.TABLES, *binning_cases.TABLES]
    tables += [*linear_algebra_cases.TABLES, *sorting_expressions.TABLES]
    tested = functions_in(tables) | elsewhere | {"top_k"}  # which has test_sorting.py
    public = {
        name
        for name in tnp.__all__
        if isinstance(getattr(tnp, name), FunctionType)
        and getattr(tnp, name).__module__ not in (elementwise.__name__, ufuncs.__name__)
        and getattr(tnp, name).__module__.startswith("tracegraph")
    }
    linalg = {f"linalg.{name}" for name in tnp.linalg.__all__}
    assert public | linalg <= tested


def test_a_function_written_for_numpy_is_traced_as_it_is() -> None:
    def normalised(x: Any, w: Any) -> Any:
        scores = np.where(x > 0, x, 0.1 * x) @ w
        scores -= scores.max(axis=-1, keepdims=True)
        weights = np.exp(scores)
        weights /= np.sum(weights, axis=-1, keepdims=True)
        out = np.zeros_like(x)
        out[..., : w.shape[1]] = weights
        out[0, -1] += np.linalg.norm(w)
        return np.concatenate([out, np.stack([x[0], x[1]])]), np.einsum("ij->ji", x)

    assert_traced_equals_eager(normalised, ARGUMENTS["x"], ARGUMENTS["y"].astype(float))


def test_without_traced_values_the_functions_are_numpys() -> None:
    assert type(tnp.sum([1, 2])) is np.int64
    assert isinstance(tnp.zeros(3), np.ndarray)
    assert tnp.sin(np.float32(0)).dtype == np.float32


def test_creation_in_a_traced_function_gives_arrays_that_may_be_written_to() -> None:
    def counted(x: Any) -> Any:
        a, b, c = tnp.zeros(4), tnp.arange(4), tnp.array([1.0, 2.0, 3.0, 4.0])
        a[1] = x
        b[2:] = 9
        c += a
        return a, b, c

    program = trace(counted, 5.0)
    a, b, c = interpret.run(program, np.float64(5))
    np.testing.assert_array_equal(a, [0, 5, 0, 0])
    np.testing.assert_array_equal(b, [0, 1, 9, 9])
    np.testing.assert_array_equal(c, [1, 7, 3, 4])


@pytest.mark.parametrize("fold", [np.sum, np.prod, np.cumsum, np.cumprod])
def test_sums_and_products_are_computed_in_the_dtype_of_out(fold: Any) -> None:
    def f(x: Any) -> Any:
        out = np.zeros_like(x, np.float64, shape=2 if fold in (np.cumsum, np.cumprod) else ())
        return fold(x, out=out)

    assert_traced_equals_eager(f, np.array([60000, 60000], np.float16))


def test_copyto_writes_in_place() -> None:
    def f(x: Any) -> Any:
        y = np.zeros_like(x)
        np.copyto(y, x, where=x > 1)
        return y

    assert_traced_equals_eager(f, np.arange(4.0))


@pytest.mark.parametrize("name", ["linalg.eig", "roots", "isnat"])
def test_what_numpy_has_and_we_lack_is_named(name: str) -> None:
    function: Any = np
    for part in name.split("."):
        function = getattr(function, part)
    with pytest.raises(errors.UnsupportedByTracerError, match=rf"numpy\.{name}"):
        trace(function, ARGUMENTS["x"])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: np.reshape(x, (5, -1)), r"cannot reshape array of shape \(3, 4\)"),
        (lambda x: np.concatenate([x, x[0]]), "concatenate"),
        (lambda x: np.stack([x, x[0]]), "same shape"),
        (lambda x: x @ x, "inner extents 4 and 3"),
        (lambda x: np.sum(x, axis=2), "axis 2 is out of bounds"),
        (lambda x: np.split(x, 3, axis=1), "array_split"),
        (lambda x: np.einsum("ij,jk", x, x), "label 'j' has extents 4 and 3"),
        (lambda x: np.max(x[:0]), "zero-size"),
        (lambda x: np.average(x, 0, np.ones(4)), r"weights of shape \(4,\) do not fit"),
    ],
)
def test_wrong_shapes_raise_value_errors(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        trace(call, ARGUMENTS["x"])
