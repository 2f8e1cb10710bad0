"""Kernels, elementwise functions and reductions of users with derivatives: for all executors.

Each stands beside the same computation by NumPy's functions, whose derivatives are known.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import tracegraph

SIZE = 6

_DAMPED = """
extern "C" __global__ void damped(const double* x, const double* y, double rate, double* out) {
  int i = threadIdx.x;
  out[i] = exp(-rate * x[i]) * sin(y[i]);
}"""


def _kernel(reference: Callable[..., Any], **options: Any) -> Any:
    return tracegraph.kernel(
        **{
            "grid": 1,
            "block": lambda x, *_: x.size,
            "batching": "sequential",
            **options,
        }
    )(reference)


def _damped(x: Any, y: Any, rate: Any) -> Any:
    return np.exp(-rate * x) * np.sin(y)


_DAMPED_OPTIONS = {
    "source": _DAMPED,
    "entry": "damped",
    "out": lambda x, y, rate: x,
    "scalars": {"rate": "float64"},
}

damped = _kernel(_damped, derivative="reference", **_DAMPED_OPTIONS)


def _damped_jvp(primals: Any, tangents: Any) -> Any:
    x, y, rate = primals
    tx, ty, none = tangents
    assert none is None
    return np.exp(-rate * x) * np.cos(y) * ty - rate * damped_by_rule(x, y, rate) * tx


damped_by_rule = _kernel(_damped, derivative=_damped_jvp, **_DAMPED_OPTIONS)
"""Its rule uses the kernel itself."""

_COUNTED = """
extern "C" __global__ void counted(const double* x, const int* n, double* y, bool* large,
                                   double* sum) {
  int i = threadIdx.x;
  y[i] = x[i] * x[i] * *n;
  large[i] = x[i] > 0.5;
  if (i) return;
  double total = 0;
  for (int k = 0; k < blockDim.x; ++k) total += x[k] * x[k];
  *sum = total;
}"""


def _counted(x: Any, n: Any) -> Any:
    return x * x * n, x > 0.5, (x * x).sum()


_COUNTED_OPTIONS = {
    "source": _COUNTED,
    "entry": "counted",
    "out": lambda x, n: (x, x.with_dtype(bool), x.with_shape(())),
}

counted = _kernel(_counted, derivative="reference", **_COUNTED_OPTIONS)


def _counted_jvp(primals: Any, tangents: Any) -> Any:
    (x, n), (t, none) = primals, tangents
    assert none is None
    return 2 * x * n * t, None, (2 * x * t).sum()


counted_by_rule = _kernel(_counted, derivative=_counted_jvp, **_COUNTED_OPTIONS)

_ADDED = """
extern "C" __global__ void added(const double* x, double* y) {
  y[threadIdx.x] += x[threadIdx.x] * x[threadIdx.x];
}"""


def _added(x: Any, y: Any) -> Any:
    y += x * x
    return y


added = _kernel(
    _added,
    source=_ADDED,
    entry="added",
    out=lambda x, y: y,
    aliases={0: "y"},
    derivative="reference",
)
"""It writes over y, in the reference, too."""

softplus = tracegraph.elementwise(
    lambda x: np.log1p(np.exp(x)), cuda="log1p(exp({0}))", derivative="reference"
)

_LOG_SUM = {"cuda": "tg_log_sum({0}, {1})", "identity": -np.inf}
_LOG_SUM_HEADER = """
template <class X> __device__ X tg_log_sum(X x, X y) {
  X high = x > y ? x : y;
  return isinf(high) ? high : high + log1p(exp((x > y ? y : x) - high));
}"""

log_sum = tracegraph.reduction(
    np.logaddexp, header=_LOG_SUM_HEADER, derivative="reference", **_LOG_SUM
)


def _log_sum_jvp(primals: Any, tangents: Any, axis: Any) -> Any:
    (x,), (t,) = primals, tangents
    total = np.expand_dims(log_sum_by_rule(x, axis), axis)
    return (np.exp(x - total) * t).sum(axis=axis)


log_sum_by_rule = tracegraph.reduction(
    np.logaddexp, header=_LOG_SUM_HEADER, derivative=_log_sum_jvp, **_LOG_SUM
)


@dataclass(frozen=True)
class Case:
    """A function of x, which calls what the user made, and the same by NumPy's functions."""

    name: str
    function: Callable[[Any], Any]
    plain: Callable[[Any], Any]

    def __str__(self) -> str:
        return self.name


def _of_damped(kernel: Any) -> Callable[[Any], Any]:
    return lambda x: kernel(x, x[::-1] * x, 0.75)


def _of_counted(kernel: Any) -> Callable[[Any], Any]:
    def function(x: Any) -> Any:
        y, large, total = kernel(x, np.int32(3))
        return np.where(large, y, x) * total

    return function


def _of_added(kernel: Any) -> Callable[[Any], Any]:
    def function(x: Any) -> Any:
        y = np.sin(x)
        return kernel(x, y) * y

    return function


def _log_sum(x: Any, axis: Any = None) -> Any:
    return np.logaddexp.reduce(x, axis=tuple(range(x.ndim)) if axis is None else axis)


def _of_log_sum(fold: Any, accumulate: Any) -> Callable[[Any], Any]:
    def function(x: Any) -> Any:
        table = np.outer(x, x)
        return fold(table, axis=1) * fold(table) + accumulate(x * x)

    return function


_PLAIN_FOLDS = _of_log_sum(_log_sum, np.logaddexp.accumulate)

CASES = [
    Case("kernel by its reference", _of_damped(damped), _of_damped(_damped)),
    Case("kernel by a rule", _of_damped(damped_by_rule), _of_damped(_damped)),
    Case("several outputs by a reference", _of_counted(counted), _of_counted(_counted)),
    Case("several outputs by a rule", _of_counted(counted_by_rule), _of_counted(_counted)),
    Case("aliased", _of_added(added), _of_added(lambda x, y: y + x * x)),
    Case("elementwise", lambda x: softplus(x) * x, lambda x: np.log1p(np.exp(x)) * x),
    Case("reduction by its reference", _of_log_sum(log_sum, log_sum.accumulate), _PLAIN_FOLDS),
    Case(
        "reduction by a rule",
        _of_log_sum(log_sum_by_rule, log_sum_by_rule.accumulate),
        _PLAIN_FOLDS,
    ),
]

each_case = pytest.mark.parametrize("case", CASES, ids=str)

POINT = np.array([0.2, 0.9, 0.4, 0.7, 0.3, 0.8])
"""No element is where a case jumps."""

Wrapper = Callable[[Callable[[Any], Any]], Callable[[Any], Any]]


def in_scan(f: Any) -> Any:
    """The function in each step of a loop."""

    def looped(x: Any) -> Any:
        return tracegraph.scan(lambda c, s: (0.5 * np.tanh(f(c)) + s * x, None), x, POINT[:3])[0]

    return looped


def in_bounded_while(f: Any) -> Any:
    def looped(x: Any) -> Any:
        def step(carry: Any) -> Any:
            n, y = carry
            return n + 1, 0.5 * np.tanh(f(y)) + 0.3 * x

        return tracegraph.while_loop(lambda c: c[0] < 3, step, (0, x), max_steps=5)[1]

    return looped


def in_branch(f: Any) -> Any:
    return lambda x: tracegraph.cond(x[0] > 0.1, lambda x: f(x) * x, lambda x: x, x)


PLACES: dict[str, Wrapper] = {
    "at the top": lambda f: f,
    "in a scan": in_scan,
    "in a while loop": in_bounded_while,
    "in a branch": in_branch,
}

each_place = pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)


def scalar(f: Any) -> Callable[[Any], Any]:
    """A function with one number as its result, which depends on each element differently."""
    return lambda x: (f(x) * np.arange(1.0, SIZE + 1)).sum()
