"""104 calls of SciPy's functions for arrays of any library; ``--help`` shows options.

Each is called with Arrays, and in a jitted function whose arguments the arrays are. It works if the
results are those of NumPy's arrays. What is returned is counted, too: results that are arrays of
NumPy have left the library.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from importlib import import_module
from typing import Any

os.environ["SCIPY_ARRAY_API"] = "1"  # SciPy reads it when it is imported

import numpy as np

CALLS = """
special: erf(x) | ndtr(x) | log_ndtr(x) | gammaln(p) | expit(x) | logit(u) | xlogy(p, p) | entr(p)
special: rel_entr(p, q) | betaln(p, q) | gammainc(p, q) | betainc(p, q, u)
special: polygamma(1, p) | softmax(x) | logsumexp(x) | logsumexp(m, axis=1) | stdtr(p, x)
stats: zscore(x) | gzscore(p) | zmap(x, y) | skew(x) | kurtosis(x) | moment(x, order=3)
stats: describe(x) | variation(p) | gstd(p) | gmean(p) | hmean(p) | pmean(p, 2) | sem(x) | tmean(x)
stats: tvar(x) | tstd(x) | iqr(x) | median_abs_deviation(x) | trim_mean(x, 0.1)
stats: entropy(p) | differential_entropy(x) | pearsonr(x, y) | ttest_1samp(x, 0.1) | kstat(x)
stats: ttest_ind(x, y) | ttest_rel(x, y) | f_oneway(x, y) | bartlett(x, y) | levene(x, y)
stats: circmean(x) | skewtest(x) | normaltest(x) | jarque_bera(x) | chisquare(p)
stats: power_divergence(p) | rankdata(x) | mode(k) | combine_pvalues(u) | quantile(x, 0.3)
stats: directional_stats(m) | kruskal(x, y) | mannwhitneyu(x, y) | wilcoxon(x) | boxcox_llf(0.5, p)
signal: hilbert(x) | fftconvolve(x, h) | oaconvolve(x, h) | convolve(x, h) | correlate(x, h)
signal: detrend(x) | resample(x, 30) | savgol_filter(x, 5, 2) | lfilter(h, a, x) | envelope(x)
signal: filtfilt(h, a, x) | sosfiltfilt(sos, x) | medfilt(x, 3) | wiener(x) | freqz_zpk(h, h, 1.0)
fft: fft(x) | irfft(rf) | fft2(m) | rfftn(m) | fftshift(x) | dct(x) | fht(p, 0.1, 0.5)
integrate: trapezoid(y, x=x) | cumulative_trapezoid(y) | romb(y[:33]) | cumulative_simpson(y)
integrate: tanhsinh(lambda t: t**2, lo, hi).integral
cluster.vq: whiten(m) | vq(m, m[:2])
cluster.hierarchy: linkage(m) | inconsistent(links) | is_valid_linkage(links)
spatial.transform: Rotation.from_rotvec(m[:, :3]).as_matrix()
spatial.transform: Rotation.from_quat(m[:, :4]).mean().as_quat()
ndimage: gaussian_filter(m, 1.0) | uniform_filter(m, 3)
interpolate: CubicSpline(t, y)(u) | RegularGridInterpolator((t,), y)(u)
linalg: block_diag(m, m) | orthogonal_procrustes(m, m[::-1, :])
differentiate: derivative(lambda t: t**3, p).df
optimize.elementwise: find_root(lambda t: t**2 - 2.0, (lo, hi)).x
constants: convert_temperature(p, "Celsius", "Kelvin")
"""


def calls() -> list[tuple[str, str]]:
    """The module below `scipy` of each call, and the call."""
    found = []
    for line in CALLS.strip().splitlines():
        module, _, rest = line.partition(": ")
        found += [(module, call.strip()) for call in rest.split(" | ")]
    return found


def inputs() -> dict[str, Any]:
    """The arrays that calls name."""
    from scipy import signal
    from scipy.cluster import hierarchy

    rng = np.random.default_rng(0)
    x = rng.normal(size=60)
    p = rng.uniform(0.2, 2.0, 60)
    return {
        "x": x,
        "y": 0.5 * x + rng.normal(size=60),
        "p": p,
        "q": np.roll(p, 7),
        "u": rng.uniform(0.05, 0.95, 60),
        "k": rng.integers(0, 5, 60),
        "m": rng.normal(size=(12, 5)),
        "h": np.array([0.25, 0.5, 0.25]),
        "a": np.array([1.0, -0.3]),
        "rf": np.fft.rfft(x),
        "sos": signal.butter(2, 0.3, output="sos"),
        "lo": np.array([0.0, 0.5]),
        "hi": np.array([2.0, 2.5]),
        "t": np.linspace(0.0, 1.0, 60),
        "links": hierarchy.linkage(rng.normal(size=(8, 2))),
    }


def leaves(result: Any) -> list[Any]:
    """The numbers and arrays in a result: those of tuples and of SciPy's objects, in order."""
    if isinstance(result, (tuple, list)):
        return [leaf for part in result for leaf in leaves(part)]
    if hasattr(result, "__dict__") and not hasattr(result, "dtype"):
        return [leaf for part in vars(result).values() for leaf in leaves(part)]
    return [result] if hasattr(result, "dtype") or isinstance(result, (int, float)) else []


def agree(found: list[Any], expected: list[Any]) -> bool:
    """Whether results are equal but for their rounding."""
    if len(found) != len(expected):
        return False
    pairs = [(np.asarray(f), np.asarray(e)) for f, e in zip(found, expected, strict=True)]
    return all(
        f.shape == e.shape and np.allclose(f, e, rtol=1e-6, atol=1e-9, equal_nan=True)
        for f, e in pairs
    )


def evaluator(module: str, call: str) -> Callable[[dict[str, Any]], list[Any]]:
    """A function of the arrays that makes the call."""
    names = vars(import_module(f"scipy.{module}"))
    code = compile(call, call, "eval")
    used = [name for name in code.co_names if name not in names or len(name) <= 3]

    def evaluate(arrays: dict[str, Any]) -> list[Any]:
        scope = {**names, **{name: arrays[name] for name in used if name in arrays}}
        return leaves(eval(code, scope))

    return evaluate


def libraries(name: str) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    """How a library makes an array, and how it jits."""
    if name == "jax":
        import jax

        jax.config.update("jax_enable_x64", True)
        return jax.numpy.asarray, jax.jit
    import tracegraph

    def jit(function: Callable[..., Any]) -> Callable[..., Any]:
        return tracegraph.jit(function, device="host")

    return tracegraph.asarray, jit


def outcomes(library: str) -> Iterator[tuple[str, str, str, str]]:
    """Each call, how it ended eagerly and jitted, and what came out eagerly."""
    asarray, jit = libraries(library)
    given = inputs()
    for module, call in calls():
        evaluate = evaluator(module, call)
        expected = evaluate(given)
        arrays = {name: asarray(value) for name, value in given.items()}
        eager, found = outcome(evaluate, arrays, expected)
        jitted, _ = outcome(jit(evaluate), arrays, expected)
        yield f"{module}.{call}", eager, jitted, kind_of(found)


def outcome(
    function: Callable[..., list[Any]], arrays: dict[str, Any], expected: list[Any]
) -> tuple[str, list[Any]]:
    """How a call ends, "works", "wrong" or the error, and what it gives."""
    try:
        found = function(arrays)
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}", []
    return ("works" if agree(found, expected) else "wrong"), found


def kind_of(found: list[Any]) -> str:
    """Whether all arrays of a result are of the library."""
    if not found:
        return ""
    of_numpy = any(isinstance(leaf, (np.ndarray, np.generic)) for leaf in found)
    return "NumPy's" if of_numpy else "own"


def main() -> int:
    """Print the counts, and with ``-v`` each call that does not work."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--library", choices=["tracegraph", "jax"], default="tracegraph")
    parser.add_argument("--unregistered", action="store_true", help="without register_array_api")
    parser.add_argument("-v", "--verbose", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    with ExitStack() as stack:
        if options.library == "tracegraph" and not options.unregistered:
            from tracegraph.interop import register_array_api

            stack.enter_context(register_array_api())
        table = list(outcomes(options.library))
    if options.verbose:
        for call, eager, jitted, kind in table:
            print(f"{call}\n    eager {eager} {kind}\n    jit   {jitted}")
    eager = sum(row[1] == "works" for row in table)
    jitted = sum(row[2] == "works" for row in table)
    left = sum(row[3] == "NumPy's" for row in table)
    wrong = sum("wrong" in row[1:3] for row in table)
    print(
        f"{options.library}: of {len(table)} calls {eager} work eagerly ({left} return arrays of "
        f"NumPy), {jitted} jitted; {wrong} wrong"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
