"""The keywords of ufuncs: `out`, `where`, `dtype`, `signature`, `casting`, `order`, `subok`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import numpy as np

from tracegraph.ir.types import promotion_tokens, type_of
from tracegraph.numpy.dispatching.core_axes import with_core_axes
from tracegraph.numpy.dispatching.dispatch import as_array, is_ours, unchecked
from tracegraph.numpy.dispatching.output import Casting, written
from tracegraph.numpy.dispatching.statics import static_parameters
from tracegraph.tracing.views import order_of

Function = Callable[..., Any]

Dtypes = tuple[np.dtype[Any] | None, ...]


def ufunc_function(ufunc: np.ufunc) -> Callable[[Function], Function]:
    """Give a function of operands alone the keywords of a ufunc; without arrays of ours, call it.

    Operands beyond those of the function are where the results go, as in NumPy.
    """

    def decorate(compute: Function) -> Function:
        own = static_parameters(compute)

        @wraps(compute)
        def function(*args: Any, **options: Any) -> Any:
            if is_ours(args) or is_ours(options.values()):
                if options or len(args) != ufunc.nin:
                    return called(ufunc, own, args, options)
                return own(*args)
            return ufunc(*args, **options)

        return function

    return decorate


def called(ufunc: np.ufunc, compute: Function, args: Sequence[Any], options: dict[str, Any]) -> Any:
    """The results of a ufunc with keywords, by a function that computes them from operands alone.

    Raises:
        TypeError: a keyword that the ufunc does not have, no loop for the dtypes, or a conversion
            that `casting` does not allow.
        ValueError: another number of operands or results.
    """
    options = dict(options)
    inputs, outs = _split(ufunc, args, options.pop("out", None))
    where = options.pop("where", True)
    casting = options.pop("casting", "same_kind")
    order_of(options.pop("order", "K"), "K")
    options.pop("subok", True)
    signature = _signature(ufunc, options)
    if ufunc.signature is not None:
        compute = with_core_axes(ufunc, compute, options)
    if options:
        raise TypeError(
            f"{ufunc.__name__}() got an unexpected keyword argument {next(iter(options))!r}"
        )
    operands = [as_array(x) if isinstance(x, (list, tuple)) else x for x in inputs]
    if signature is not None or casting != "same_kind":
        dtypes = _loop(ufunc, operands, signature, casting)
        operands = [_converted(x, d) for x, d in zip(operands, dtypes, strict=False)]
    results = compute(*operands)
    if ufunc.nout == 1:
        return written(ufunc.__name__, results, outs[0], where, casting)
    return tuple(
        [written(ufunc.__name__, r, o, where, casting) for r, o in zip(results, outs, strict=True)]
    )


def _split(
    ufunc: np.ufunc, args: Sequence[Any], out: Any
) -> tuple[Sequence[Any], Sequence[Any | None]]:
    """Operands, and for each result the array to write it to, if there is one."""
    name = ufunc.__name__
    if not ufunc.nin <= len(args) <= ufunc.nargs:
        raise TypeError(
            f"{name}() takes from {ufunc.nin} to {ufunc.nargs} positional arguments but "
            f"{len(args)} were given"
        )
    inputs, outputs = args[: ufunc.nin], tuple(args[ufunc.nin :])
    if outputs and out is not None:
        raise TypeError(f"{name}() got its results both as positional arguments and as out=")
    if out is not None:
        outputs = out if isinstance(out, tuple) else (out,)
        if len(outputs) != ufunc.nout:
            raise ValueError(
                f"out= of {name} is a tuple of {ufunc.nout} arrays, or one where there is one "
                f"result; got {len(outputs)}"
            )
    return inputs, (*outputs, *[None] * (ufunc.nout - len(outputs)))


def _signature(ufunc: np.ufunc, options: dict[str, Any]) -> Dtypes | None:
    """The dtypes that keywords fix, of operands and results; taken from the keywords."""
    names = [n for n in ("dtype", "signature", "sig") if options.get(n) is not None]
    given = {n: options.pop(n, None) for n in ("dtype", "signature", "sig")}
    if not names:
        return None
    if len(names) > 1:
        raise TypeError(f"cannot specify both {names[0]!r} and {names[1]!r}")
    value = given[names[0]]
    if names == ["dtype"]:
        return (*[None] * ufunc.nin, *[np.dtype(value)] * ufunc.nout)
    if isinstance(value, (str, bytes)):
        value = _codes(ufunc, value)
    elif not isinstance(value, tuple):
        value = (value,)
    if len(value) == 1 < ufunc.nargs:
        raise TypeError(f"a signature of one dtype is none of {ufunc.__name__}; write dtype=")
    if len(value) != ufunc.nargs:
        raise ValueError(
            f"the signature of {ufunc.__name__} has {ufunc.nargs} dtypes, got {len(value)}"
        )
    return tuple([None if v is None else np.dtype(v) for v in value])


def _codes(ufunc: np.ufunc, text: str | bytes) -> tuple[Any, ...]:
    """The characters of dtypes in a signature such as "dd->d"; of one dtype alone, itself."""
    text = text.decode() if isinstance(text, bytes) else text
    operands, arrow, results = text.partition("->")
    if not arrow and len(text) == 1:
        return (text,)
    if (len(operands), len(results)) != (ufunc.nin, ufunc.nout):
        raise ValueError(
            f"a signature of {ufunc.__name__} has {ufunc.nin} characters of dtypes, '->', and "
            f"{ufunc.nout} more, got {text!r}"
        )
    if unknown := [c for c in operands + results if c not in np.typecodes["All"] + "?"]:
        raise ValueError(f"{unknown[0]!r} in the signature {text!r} is no character of a dtype")
    return (*operands, *results)


def _loop(
    ufunc: np.ufunc, operands: Sequence[Any], signature: Dtypes | None, casting: Casting
) -> tuple[np.dtype[Any], ...]:
    """The dtypes of the loop that NumPy chooses.

    NumPy is asked without a rule for casts, and these are checked here: one that fails beside a
    Python number ends the process (NumPy 2.4).
    """
    tokens = promotion_tokens([type_of(x) for x in operands])
    dtypes_asked = (*tokens, *(None,) * ufunc.nout)
    if signature is None:
        resolved = ufunc.resolve_dtypes(dtypes_asked, casting="unsafe")
    else:
        resolved = ufunc.resolve_dtypes(dtypes_asked, casting="unsafe", signature=signature)
    for token, dtype in zip(tokens, resolved, strict=False):
        if isinstance(token, type):  # of a Python number
            allowed = casting == "unsafe" or np.result_type(token(0), dtype) == dtype
        else:
            allowed = np.can_cast(token, dtype, casting)
        if not allowed:
            raise TypeError(
                f"numpy.{ufunc.__name__} cannot cast an operand of "
                f"{getattr(token, '__name__', token)} to {dtype} by the rule {casting!r}"
            )
    return tuple(resolved)


def _converted(x: Any, dtype: np.dtype[Any]) -> Any:
    return x if type_of(x).dtype == dtype and not type_of(x).weak else unchecked(x, dtype)
