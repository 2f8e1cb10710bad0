"""When the result of an op counts as NumPy's: the one place for tolerances of ops."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import cache
from itertools import product
from random import Random
from typing import Any

import numpy as np

import tracegraph
from lowering.host.choice import chosen_kind
from lowering.host.executable import HostExecutable
from lowering.lower import lower
from lowering.plan.target.overrides import override
from lowering.planning.factorizations import FactorizationForm
from tracegraph.arrays.eager import apply
from tracegraph.ir.op import Op, Sample
from tracegraph.ir.types import ArrayType, type_of
from tracegraph.testing.ulps import close

NDArray = np.ndarray[Any, Any]
Run = Callable[[Op, Sequence[Any], Mapping[str, Any]], Any]

ULPS = {"f": 2, "c": 8}
"""Units in the last place by which a result may differ, by its kind. Complex functions are made of
several real ones, in NumPy too, whose own error reaches 4 of these units (of the larger part)."""

FUNCTION_FOLDS = [
    f"{function}_{fold}"
    for function in ("hypot", "logaddexp", "logaddexp2")
    for fold in ("accumulate", "reduce")
]

SPECIAL = {
    **dict.fromkeys(["erf", "erfc", "erfcx", "erfinv", "erfcinv", "ndtr", "ndtri", "log_ndtr"], 16),
    **dict.fromkeys(["i0", "i0e", "i1", "i1e", "gamma", "kl_div", "rel_entr", "logit"], 16),
    **dict.fromkeys(["expit", "log_expit", "xlogy", "xlog1py", "entr"], 4),
    **dict.fromkeys(["gammaln", "digamma", "polygamma", "betaln"], 64),
    **dict.fromkeys(["exp1", "expi"], 64),
    **dict.fromkeys(["ellipk", "ellipe"], 32),
    **dict.fromkeys(["gammainc", "gammaincc", "betainc"], 512),
    "zeta": 32,
    **dict.fromkeys(["j0", "j1", "y0", "y1"], 1 << 20),
}
"""Of special functions. CUDA states errors of up to 10 ulp for those of its library, and references
have up to 10. The logarithm of gamma, its derivatives and Bessel functions have zeros, some of them
near samples; nearby they are precise to some ulp of 1. Incomplete functions have tails whose
exponent is rounded. CUDA's Bessel functions of float64 are off
by up to 5e-12 beyond 8; those of the host are compared with constants elsewhere."""

LOOSER = {
    **{(name, "f"): ulps for name, ulps in SPECIAL.items()},
    ("power", "c"): 64,
    ("float_power", "c"): 64,
    ("prod", "f"): 32,
    ("prod", "c"): 64,
    ("cumprod", "f"): 32,
    ("cumprod", "c"): 64,
    **dict.fromkeys(product(FUNCTION_FOLDS, "f"), 32),
}
"""Exceptions to `ULPS` by op. A complex power is exp(y log x), which multiplies the error of the
logarithm by the size of its product with y. A product of n numbers rounds n times, in an order that
is not specified; samples fold up to 60. So do folds of functions that are off by some ulp each."""

BY_MATRIX = {
    "cholesky": 16,
    "lu": 256,
    "qr": 64,
    **dict.fromkeys(["triangular_solve", "tridiagonal_solve"], 4096),
    **dict.fromkeys(["fft", "rfft", "irfft"], 8),
    "eigh": 64,
    "svd": 64,
    "pinv": 4096,
}
"""Ops whose results are compared matrix by matrix: units in the last place of its largest element.
Rounding moves results by as much as the condition of a matrix, which is small in samples, and up to
some hundreds where the lanes of `vmap` are made of them."""


def _of_eigh(values: Any, vectors: Any = None) -> tuple[Any, ...]:
    """The eigenvalues, and with vectors the matrix that has them, and their products."""
    if vectors is None:
        return (values[..., None, :],)
    turned = np.conj(np.swapaxes(vectors, -1, -2))
    return values[..., None, :], vectors * values[..., None, :] @ turned, turned @ vectors


def _of_svd(*results: Any) -> tuple[Any, ...]:
    """The singular values, and with vectors the matrix that has them, and their products."""
    if len(results) == 1:
        return (results[0][..., None, :],)
    u, values, vh = results
    left, right = (np.conj(np.swapaxes(x, -1, -2)) for x in (u, vh))
    return values[..., None, :], u * values[..., None, :] @ vh, left @ u, vh @ right


DETERMINED: Mapping[str, Callable[..., tuple[Any, ...]]] = {"eigh": _of_eigh, "svd": _of_svd}
"""What the operands of an op determine, where they do not determine its results: eigenvectors and
singular vectors may have other signs or phases, and those of equal values span the same space."""

ANY_ZERO = frozenset({"clip", "fmax", "fmin", "maximum", "minimum", "nextafter", "sign"})
"""Ops for which NumPy's loops for different dtypes do not agree on the sign of a zero result."""

FOLDED_BY_INSTRUCTIONS = frozenset({"max", "min"})
"""Those besides that GPUs and native code fold by instructions to which +0 is larger than -0. NumPy
takes the one or the other, by the dtype, the length and the place."""


def check(op: Op, sample: Sample, run: Run, any_zero: frozenset[str] = ANY_ZERO) -> None:
    """Require that `run(op, operands, attrs)` gives what the op's reference gives.

    Dtype and shape are exact, integers and bools too; NaNs and infinities stand in the same places,
    zeros have the same sign unless the op is in `any_zero`, and finite numbers differ by `ULPS` at
    most.
    """
    expected = op.reference(*sample.operands, **sample.attrs)
    actual = run(op, sample.operands, sample.attrs)
    if not isinstance(expected, tuple):
        expected, actual = (expected,), (actual,)
    assert len(actual) == len(expected)
    if op.name in DETERMINED:
        for got, wanted in zip(actual, expected, strict=True):
            assert (np.asarray(got).dtype, np.shape(got)) == (wanted.dtype, wanted.shape)
        expected = DETERMINED[op.name](*map(np.asarray, expected))
        actual = DETERMINED[op.name](*map(np.asarray, actual))
    if op.name in BY_MATRIX:
        for got, wanted in zip(actual, expected, strict=True):
            assert_matrices_agree(got, wanted, BY_MATRIX[op.name])
        return
    for got, wanted in zip(actual, expected, strict=True):
        kind = np.asarray(wanted).dtype.kind.replace("V", "f")  # bfloat16
        ulps = LOOSER.get((op.name, kind), ULPS.get(kind, 0))
        assert_agrees(got, wanted, ulps, signs=op.name not in any_zero)


def assert_agrees(actual: Any, expected: Any, ulps: int, signs: bool = True) -> None:
    """Require that two arrays are equal within `ulps`; with `signs`, zeros by sign too."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
    if expected.dtype.kind in "biu":
        np.testing.assert_array_equal(actual, expected)
        return
    wrong = ~close(actual, expected, ulps, signs=signs)
    assert not wrong.any(), (
        f"{wrong.sum()} of {wrong.size} {expected.dtype} elements differ by more than {ulps} ulp, "
        f"first at {np.argwhere(wrong)[:5].tolist()}: got {actual[np.asarray(wrong)][:5]}, "
        f"NumPy has {expected[np.asarray(wrong)][:5]}"
    )


def assert_matrices_agree(actual: Any, expected: Any, units: int) -> None:
    """Require matrices, in the last two axes, equal within units of the largest element of each; or
    vectors.

    Integers are exact, and NaNs and infinities stand in the same places.
    """
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
    if expected.dtype.kind not in "fc":
        np.testing.assert_array_equal(actual, expected)
        return
    special = ~np.isfinite(expected)
    np.testing.assert_array_equal(actual[special], expected[special])
    axes = tuple(range(-min(2, expected.ndim), 0))
    size = np.where(special, 0, np.abs(expected)).max(axis=axes, keepdims=True, initial=0)
    with np.errstate(invalid="ignore"):
        distance = np.where(special, 0, np.abs(actual - expected))
    worst = units * np.spacing(size)
    assert (distance <= worst).all(), f"{np.max(distance / np.spacing(size))} units, not {units}"


def planned_for_cuda(
    op: Op,
    operands: Sequence[Any],
    attrs: Mapping[str, Any],
    form: FactorizationForm | None = None,
) -> Any:
    """What the plan of an op for a GPU gives, run on the host in a random order.

    Factorizations are of the given form, if any.
    """
    types = tuple(map(type_of, operands))
    found = _executable_for_cuda(op, types, tuple(attrs.items()), form)(list(operands))
    return tuple(found) if len(found) > 1 else found[0]


@cache
def _executable_for_cuda(
    op: Op,
    types: tuple[ArrayType, ...],
    attrs: tuple[tuple[str, Any], ...],
    form: FactorizationForm | None,
) -> HostExecutable:
    def function(*xs: Any) -> Any:
        return apply(op, *xs, **dict(attrs))

    program = tracegraph.jit(function, device="host").trace(*types).optimized
    with override(factorizations=form) if form else nullcontext():
        plan = lower(program, "cuda")
    return HostExecutable(plan, poison=True, order=Random(0))


def check_on(op: Op, device: str) -> None:
    """`check` for every sample of an op, all in one program on a device."""
    samples = op.samples()

    def every(*operands: tuple[Any, ...]) -> list[Any]:
        return [apply(op, *given, **s.attrs) for given, s in zip(operands, samples, strict=True)]

    arguments = [tuple(map(np.asarray, s.operands)) for s in samples]
    results = iter(tracegraph.jit(every, device=device)(*arguments))
    for sample in samples:
        check(op, sample, lambda *_: next(results), any_zero_on(device))


def any_zero_on(device: str) -> frozenset[str]:
    """The ops whose zeros may have either sign on a device."""
    by_instructions = device == "cuda" or chosen_kind() == "native"
    return ANY_ZERO | FOLDED_BY_INSTRUCTIONS if by_instructions else ANY_ZERO
