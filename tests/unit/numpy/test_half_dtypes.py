"""float16 and bfloat16 have the same dtypes in all functions: those of NumPy's float16.

That is the rule of docs/numpy.md; it holds for what is traced and for Arrays.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracegraph
import tracegraph.numpy as tnp
from tracegraph.dtypes import bfloat16

X = np.array([[2.0, 0.5, 1.0], [0.25, 3.0, 0.75], [1.0, 0.5, 4.0]])

# fmt: off
EXPRESSIONS = [
    "np.sin(x)", "np.exp(x)", "np.log1p(x)", "np.sqrt(x)", "np.abs(x)", "np.square(x)",
    "np.cbrt(x)", "np.arctan2(x,x)", "np.hypot(x,x)", "np.power(x,2)", "x**2", "x**0.5", "x**x",
    "np.float_power(x,2)", "np.add(x,x)", "x+1", "x+1.5", "x*2", "x/2", "x//2", "x%2",
    "np.fmod(x,2)", "np.divmod(x,2)[0]", "np.modf(x)[0]", "np.frexp(x)[0]", "np.frexp(x)[1]",
    "np.ldexp(x,2)", "np.reciprocal(x)", "np.sign(x)", "np.maximum(x,1)", "np.fmax(x,x)",
    "np.clip(x,0,1)", "np.clip(x,0.5,1.5)", "np.copysign(x,-1)", "np.nextafter(x,2)",
    "np.spacing(x)", "np.heaviside(x,0.5)", "np.logaddexp(x,x)", "np.logaddexp2(x,x)",
    "np.deg2rad(x)", "np.degrees(x)", "np.sinc(x)", "np.i0(x)", "np.rint(x)", "np.floor(x)",
    "np.trunc(x)", "np.fix(x)", "np.round(x)", "np.round(x,1)", "np.round(x,-1)",
    "np.around(x,2)", "x.round(1)", "np.nan_to_num(x)", "np.angle(x)", "np.real(x)", "np.imag(x)",
    "np.conj(x)", "np.isnan(x)", "np.isfinite(x)", "np.signbit(x)", "x>1", "x==x",
    "np.isclose(x,x)", "np.allclose(x,x)", "np.where(x>1,x,0)", "np.where(x>1,x,0.5)",
    "np.select([x>1],[x],0)", "np.piecewise(x,[x>1],[1,2])", "np.sum(x)", "np.sum(x,axis=0)",
    "np.prod(x)", "np.mean(x)", "np.mean(x,axis=0)", "np.var(x)", "np.std(x)", "np.max(x)",
    "np.min(x)", "np.ptp(x)", "np.any(x)", "np.all(x)", "np.argmax(x)", "np.count_nonzero(x)",
    "np.nansum(x)", "np.nanmean(x)", "np.nanstd(x)", "np.nanvar(x)", "np.nanmax(x)",
    "np.nanprod(x)", "np.nanmedian(x)", "np.median(x)", "np.quantile(x,0.3)",
    "np.percentile(x,30)", "np.quantile(x,[0.3,0.5])", "np.nanquantile(x,0.3)", "np.average(x)",
    "np.average(x,weights=x)", "np.cov(x)", "np.corrcoef(x)", "np.cumsum(x)", "np.cumprod(x)",
    "np.nancumsum(x)", "np.diff(x)", "np.ediff1d(x)", "np.gradient(x,axis=0)",
    "np.gradient(x[0])", "np.trapezoid(x)", "np.unwrap(x)", "np.convolve(x[0],x[0])",
    "np.correlate(x[0],x[0])", "np.interp(x,x[0],x[0])", "np.interp(0.5,x[0],x[0])",
    "np.matmul(x,x)", "x@x", "np.dot(x,x)", "np.vdot(x[0],x[0])", "np.inner(x,x)",
    "np.outer(x[0],x[0])", "np.tensordot(x,x)", "np.einsum('ij,jk->ik',x,x)",
    "np.einsum('ij->i',x)", "np.kron(x,x)", "np.cross(x,x)", "np.vecdot(x,x)",
    "np.matvec(x,x[0])", "np.vecmat(x[0],x)", "np.linalg.norm(x)", "np.linalg.norm(x[0])",
    "np.linalg.norm(x,axis=1)", "np.linalg.norm(x,1)", "np.linalg.norm(x[0],1)",
    "np.linalg.norm(x[0],3)", "np.linalg.norm(x,'fro')", "np.linalg.vector_norm(x)",
    "np.linalg.matrix_norm(x)", "np.linalg.matrix_power(x,2)", "np.linalg.matrix_power(x,0)",
    "np.linalg.multi_dot([x,x,x])", "np.linalg.trace(x)", "np.linalg.outer(x[0],x[0])",
    "np.linalg.cross(x,x)", "np.linalg.vecdot(x,x)", "np.linalg.diagonal(x)", "np.trace(x)",
    "np.polyval(x[0],x)", "np.polyadd(x[0],x[0])", "np.polymul(x[0],x[0])", "np.polyder(x[0])",
    "np.polyint(x[0])", "np.vander(x[0])", "np.linspace(x[0,0],x[0,1],4)",
    "np.linspace(x[0],x[1],4)", "np.linspace(x[0],2.0,4)", "np.linspace(0.0,x[0],4)",
    "np.logspace(x[0],x[1],4)", "np.geomspace(x[0],x[1],4)", "np.zeros_like(x)",
    "np.ones_like(x)", "np.full_like(x,2)", "np.empty_like(x)", "np.copy(x)",
    "np.concatenate([x,x])", "np.stack([x,x])", "np.tile(x,2)", "np.repeat(x,2)", "np.pad(x,1)",
    "np.roll(x,1)", "np.flip(x)", "np.sort(x)", "np.argsort(x)", "np.partition(x,1)",
    "np.searchsorted(x[0],x)", "np.histogram(x,4,(0,4))[0]", "np.histogram(x,4,(0,4))[1]",
    "np.histogram(x,4)[1]", "np.bincount(np.arange(3),weights=x[0])", "np.take(x,1)",
    "np.take_along_axis(x,np.argsort(x),1)", "np.diag(x)", "np.diagflat(x)", "np.tril(x)",
    "np.triu(x)", "np.insert(x,1,0,axis=0)", "np.delete(x,1,axis=0)", "np.append(x,x)",
    "np.meshgrid(x[0],x[0])[0]", "np.broadcast_to(x,(2,3,3))", "np.apply_along_axis(np.sum,0,x)",
    "np.fft.fft(x)", "np.fft.rfft(x)", "np.fft.ifft(x)", "np.fft.fftshift(x)", "x.sum()",
    "x.mean()", "x.std()", "x.astype(np.float32)+x", "x+np.float32(1)", "x+np.float64(1)",
    "x+np.int8(1)", "x+np.int16(1)", "x+np.int32(1)", "x+np.int64(1)", "x+np.uint8(1)",
    "x+np.True_", "x+1j", "np.add.reduce(x)", "np.add.accumulate(x)", "np.maximum.reduce(x)",
    "np.multiply.outer(x,x)", "np.add(x,x,dtype=np.float32)", "np.sum(x,dtype=np.float32)",
    "np.mean(x,dtype=np.float32)", "np.cumulative_sum(x[0])", "np.isin(x,x)",
    "np.array_equal(x,x)", "np.fabs(x)", "np.positive(x)", "-x", "np.exp2(x)", "np.log2(x)",
    "np.log10(x)", "np.expm1(x)", "np.tan(x)", "np.tanh(x)", "np.arcsinh(x)", "np.remainder(x,x)",
    "np.floor_divide(x,x)", "np.real_if_close(x)", "np.resize(x,4)", "np.extract(np.eye(3)>0,x)",
    "np.choose([0,1,0],[x[0],x[1]])", "np.rot90(x)", "np.cumulative_prod(x[0])",
    "np.matrix_transpose(x)", "np.linalg.det(x)", "np.linalg.inv(x)", "np.linalg.solve(x,x)",
    "np.linalg.cholesky(x@x.T)", "np.linalg.qr(x)[0]", "np.linalg.svd(x)[1]",
    "np.linalg.eigh(x)[0]", "np.linalg.pinv(x)", "np.linalg.cond(x)", "np.linalg.slogdet(x)[1]",
    "np.linalg.lstsq(x,x[0])[0]", "np.linalg.matrix_rank(x)", "np.linalg.eigvalsh(x)",
    "np.linalg.tensorsolve(x,x[0])", "np.linalg.tensorinv(x,1)", "np.linalg.svdvals(x)",
    "np.digitize(x,np.sort(x[0]))", "tnp.unique(x[0],size=3)", "tnp.vectorize(np.sin)(x)",
    "np.fft.irfft(x)", "np.fft.hfft(x)", "np.fft.fft2(x)", "np.subtract.outer(x,1.5)", "x-0.5",
    "1/x", "1.5-x", "x>=0.5", "np.maximum(x,0.5)", "np.where(x>1,0.5,x)", "np.fmin(0.5,x)",
    "np.clip(x,0.5,None)", "np.nanpercentile(x,[10,20])", "np.nancumprod(x)",
    "np.pad(x,1,constant_values=0.5)", "np.append(x,[[0.5,1,2]],axis=0)", "np.full_like(x,0.5)",
    "np.insert(x,1,0.5,axis=0)",
]
# fmt: on

REFUSED = (TypeError, ValueError)

Found = Any
"""A dtype, or None where the function is refused."""


def evaluated(text: str, x: Any, numpy: Any = tnp) -> Any:
    return eval(text, {"np": np, "tnp": numpy, "x": x})


def dtype_by_numpy(text: str) -> Found:
    """What NumPy gives for float16; of what tracegraph.numpy has beyond it, what that gives."""
    try:
        return np.asarray(evaluated(text, X.astype(np.float16))).dtype
    except REFUSED:
        return None


def traced_dtype(text: str, x: Any) -> Found:
    try:
        found = tracegraph.jit(lambda x: evaluated(text, x), device="host")(x)
    except REFUSED:
        return None
    return np.asarray(found).dtype


def dtype_of_arrays(text: str, x: Any) -> Found:
    try:
        return np.asarray(evaluated(text, tracegraph.asarray(x))).dtype
    except REFUSED:
        return None


@pytest.mark.parametrize("text", EXPRESSIONS)
@pytest.mark.filterwarnings("ignore")
def test_traced_and_eager_dtypes_are_those_of_float16(text: str) -> None:
    rule = dtype_by_numpy(text)
    half = X.astype(np.float16)
    assert (traced_dtype(text, half), dtype_of_arrays(text, half)) == (rule, rule)
    rule = bfloat16 if rule == np.float16 else rule
    brain = X.astype(bfloat16)
    assert (traced_dtype(text, brain), dtype_of_arrays(text, brain)) == (rule, rule)


@pytest.mark.parametrize(
    "text",
    [
        *("x + 1.5", "np.where(x > 1, x, 0.5)", "np.clip(x, 0.5, 1.5)", "x @ x", "np.round(x, 1)"),
        *("np.i0(x)", "np.linalg.norm(x)", "np.quantile(x, 0.3)", "np.unwrap(x)"),
        *("np.linspace(x[0], x[1], 4)", "np.gradient(x[0])", "np.sum(x, 0)", "np.mean(x)"),
    ],
)
def test_values_of_bfloat16_are_those_of_float32_rounded(text: str) -> None:
    brain = X.astype(bfloat16)
    expected = np.asarray(evaluated(text, brain.astype(np.float32))).astype(np.float64)
    compiled = tracegraph.jit(lambda x: evaluated(text, x), device="host")(brain)
    for found in (compiled, evaluated(text, tracegraph.asarray(brain))):
        np.testing.assert_allclose(np.asarray(found).astype(np.float64), expected, rtol=2**-6)


def test_quantiles_of_nan_are_nan_in_bfloat16() -> None:
    x = np.array([1.0, np.nan, 3.0]).astype(bfloat16)

    def f(x: Any, weights: Any) -> Any:
        weighted = np.quantile(x, 0.5, weights=weights, method="inverted_cdf")
        return np.median(x), np.quantile(x, 0.3), weighted

    for found in tracegraph.jit(f, device="host")(x, np.ones(3)):
        assert np.isnan(np.asarray(found).astype(np.float32))
