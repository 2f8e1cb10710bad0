"""NumPy's protocols: what `np.sin(x)` and `np.concatenate([x, y])` do with tracers and Arrays."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from types import ModuleType
from typing import Any

import numpy as np

from tracegraph import errors
from tracegraph import numpy as functions
from tracegraph.numpy import segments
from tracegraph.numpy.dispatching import ufunc_at, ufunc_methods
from tracegraph.numpy.dispatching.statics import require_static
from tracegraph.numpy.selected_ufunc_methods import method_of_selected
from tracegraph.tracing.function_table import SPECIAL
from tracegraph.tracing.selected import Selected
from tracegraph.tracing.tracer import Tracer

_SHAPE_DEPENDENT = frozenset({"trim_zeros"})

_INSTEAD = {
    "numpy.min_scalar_type": "write x.dtype, which it is for an array with axes",
}
"""What to write for a function that is missing, by its full name, where it is a line."""

_ADVICE = {
    "numpy.roots": "they are the eigenvalues of a matrix that is not Hermitian, which LAPACK alone "
    "has: write tracegraph.pure_callback(lambda p: numpy.roots(p).astype(complex), "
    "tracegraph.ArrayType(complex, (len(p) - 1,)), p), or find one root with "
    "tracegraph.while_loop",
    **{
        f"numpy.linalg.{name}": f"use numpy.linalg.{hermitian} if the matrices are Hermitian, or "
        "numpy.linalg.svd; others have eigenvalues outside alone, where NumPy calls LAPACK"
        for name, hermitian in (("eig", "eigh"), ("eigvals", "eigvalsh"))
    },
}
"""What else to do if there is no such function."""


def array_ufunc(
    ufunc: np.ufunc, method: str, inputs: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    """A NumPy ufunc, or one of its methods, applied to arrays some of which are ours.

    Raises:
        UnsupportedByTracerError: there is no such function here.
    """
    name = ufunc.__name__
    if name in _OF_SCIPY and _is_scipys(ufunc):
        return _of_scipy(ufunc, method, inputs, kwargs)
    function = getattr(functions, name, None)
    if method == "__call__" and not kwargs and function is not None:
        return function(*inputs)
    options = dict(kwargs)
    out = options.pop("out", None)
    if out is not None:
        options["out"] = out[0] if len(out) == 1 else out
    if method == "at":
        return ufunc_at.at(ufunc, *inputs)
    if method in _METHODS:
        own: Callable[..., Any] = partial(_METHODS[method], ufunc)
        if Selected in map(type, (*inputs, *options.values())):
            own = method_of_selected(ufunc, method, own)
        return _applied(f"numpy.{name}", own, inputs, options)
    if function is None or method != "__call__":
        label = ufunc_label(ufunc)
        what = label if method == "__call__" else f"{label}.{method}"
        is_python = name.endswith(" (vectorized)")  # made by numpy.frompyfunc
        advice = "make it with tracegraph.numpy.vectorize" if is_python else ""
        raise errors.UnsupportedByTracerError(what, advice)
    return _applied(f"numpy.{name}", function, inputs, options)


_RENAMED = {"psi": "digamma", "_zeta": "zeta"}
"""Our names of SciPy's ufuncs, where they differ."""

_NOT_OURS = {
    "_riemann_zeta": "write tracegraph.special.zeta(x), which is of x from 1",
}
"""Ufuncs of SciPy's that ours are not in place of, and why."""

_OF_SCIPY = frozenset(
    {"erf", "erfc", "erfcx", "erfinv", "erfcinv", "ndtr", "ndtri", "log_ndtr", "gammaln"}
    | {"gamma", "betaln", "beta", "i0", "i0e", "i1", "i1e", "j0", "j1", "y0", "y1", "exp1"}
    | {"expi", "expit", "logit", "log_expit", "xlogy", "xlog1py", "entr", "rel_entr", "kl_div"}
    | {"gammainc", "gammaincc", "betainc", "ellipk", "ellipe", *_RENAMED, *_NOT_OURS}
)
"""Ufuncs of `scipy.special` with functions of ours in `tracegraph.special`."""


def is_ours(ufunc: np.ufunc) -> bool:
    """Whether a ufunc is one of `scipy.special` that ours are in place of."""
    name = ufunc.__name__
    if name not in _OF_SCIPY or name in _NOT_OURS:
        return False
    return _is_scipys(ufunc)


def _is_scipys(ufunc: np.ufunc) -> bool:
    """Whether a ufunc is one of `scipy.special`; the module also has private ones."""
    module = sys.modules.get("scipy.special._ufuncs")
    return module is not None and getattr(module, ufunc.__name__, None) is ufunc


def _of_scipy(
    ufunc: np.ufunc, method: str, inputs: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    """A ufunc of SciPy's, by the function of `tracegraph.special` in its place.

    Raises:
        UnsupportedByTracerError: it is a method, or has options that ours lack.
    """
    name = ufunc.__name__
    label = f"scipy.special.{name.lstrip('_')}"
    if name in _NOT_OURS:
        raise errors.UnsupportedByTracerError("scipy.special.zeta(x)", _NOT_OURS[name])
    own = _RENAMED.get(name, name)
    options = [key for key in kwargs if key != "out" or any(x is not None for x in kwargs[key])]
    if method != "__call__" or options:
        what = (
            f"{label}.{method}" if method != "__call__" else f"argument {options[0]!r} of {label}"
        )
        raise errors.UnsupportedByTracerError(
            what, f"write tracegraph.special.{own} with the operands alone"
        )
    return SPECIAL[own](*inputs)


def ufunc_label(ufunc: np.ufunc) -> str:
    """The full name of a ufunc, which does not know its module: NumPy's, or another library's."""
    name = ufunc.__name__
    if getattr(np, name, None) is ufunc:
        return f"numpy.{name}"
    modules = [m for m, module in list(sys.modules.items()) if vars(module).get(name) is ufunc]
    public = [m for m in modules if not any(part.startswith("_") for part in m.split("."))]
    return ".".join((*sorted(public, key=len)[:1], name))


_METHODS: Mapping[str, Callable[..., Any]] = {
    "reduce": ufunc_methods.reduce,
    "accumulate": ufunc_methods.accumulate,
    "reduceat": segments.reduceat,
    "outer": ufunc_methods.outer,
}


def array_function(func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """A NumPy function applied to arguments that hold our arrays: the one of the same name here.

    Raises:
        ShapeDependentError: the result's shape would depend on traced elements.
        UnsupportedByTracerError: there is no such function here.
    """
    label, function = _counterpart(func)
    if func.__name__ in _SHAPE_DEPENDENT:
        tracer = next(_tracers((*args, *kwargs.values())), None)
        if tracer is not None:
            raise errors.ShapeDependentError(tracer, label)
    if function is None:
        raise errors.UnsupportedByTracerError(label, (_INSTEAD | _ADVICE).get(label, ""))
    return _applied(label, function, args, kwargs)


def has(func: Callable[..., Any]) -> bool:
    """Whether a NumPy function has one of the same name here."""
    return _counterpart(func)[1] is not None


@lru_cache(maxsize=1024)
def _counterpart(func: Callable[..., Any]) -> tuple[str, Callable[..., Any] | None]:
    """The full name of a NumPy function, and the one of the same name here."""
    name = func.__name__
    module = (getattr(func, "__module__", None) or "numpy").partition("numpy")[2].lstrip(".")
    label = ".".join(part for part in ("numpy", module, name) if part)
    namespace: Any = functions
    for part in module.split(".") if module else ():
        namespace = getattr(namespace, part, None)
    function = getattr(namespace, name, None)
    return label, None if isinstance(function, ModuleType) else function


def _applied(
    label: str, function: Callable[..., Any], args: Sequence[Any], options: Mapping[str, Any]
) -> Any:
    given = {k: v for k, v in options.items() if not _is_omitted(v)}
    try:
        return function(*args, **given)
    except Exception as error:
        require_static(label, function, args, given)
        if not isinstance(error, TypeError) or "unexpected keyword argument" not in str(error):
            raise
        keyword = str(error).rpartition("argument ")[2]
        raise errors.UnsupportedByTracerError(f"argument {keyword} of {label}") from None


def _is_omitted(value: Any) -> bool:
    """Whether a value is NumPy's marker of an argument not given."""
    return value is np._NoValue


def _tracers(values: Sequence[Any]) -> Iterator[Tracer]:
    for value in values:
        if isinstance(value, Tracer):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from _tracers(value)
