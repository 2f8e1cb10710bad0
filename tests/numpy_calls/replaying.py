"""One recorded call under jit, beside NumPy."""

from __future__ import annotations

import copy
import inspect
import re
import signal
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import BuiltinFunctionType
from typing import Any

import numpy as np

import tracegraph
import tracegraph.numpy as tnp
from tracegraph import errors
from tracegraph.arrays.array import Array
from tracegraph.tracing.selected import Selected
from tracegraph.tracing.tracer import Tracer

from . import calls
from .by_design import reason_for
from .calls import Call
from .comparing import difference
from .left_out import METHODS, OF_SHAPES

SAME, STATIC, BY_VALUE, DESIGN = "same", "static", "by value", "by design"
DIFFERS, ACCEPTED, REFUSED, RAW, SKIPPED = "differs", "accepted", "refused", "raw", "skipped"
OUTCOMES = (SAME, STATIC, BY_VALUE, DESIGN, DIFFERS, ACCEPTED, REFUSED, RAW, SKIPPED)

SECONDS = 10
"""A call that takes longer has failed."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a call.

    `kind` is `SAME` as NumPy; `STATIC`: the same once an argument that the error names is static;
    `BY_VALUE`: NumPy raises for these elements alone, which a trace does not know; `DESIGN`: it
    differs or is refused as the list says; `DIFFERS`; `ACCEPTED` where NumPy raises; `REFUSED` by
    an error of ours; `RAW`: it fails by an error that is none of ours; `SKIPPED`.
    """

    kind: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class _Given:
    """What a call gave: a value and the arrays it changed, or an error."""

    value: Any = None
    error: Exception | None = None


def replay(call: Call, eagerly: bool = False) -> Outcome:
    """Run a call in NumPy, and under jit for the host, with its arrays traced.

    With `eagerly`, its arrays are `tracegraph.Array`s, and nothing is traced.
    """
    try:
        args, kwargs = call.arguments
    except ImportError:
        return Outcome(SKIPPED, "a class of the test among the arguments")
    if call.target.startswith("ndarray.") and call.target[8:] in METHODS:
        return Outcome(SKIPPED, METHODS[call.target[8:]])
    if call.target.startswith("operator.") and any(type(a) in (str, bytes) for a in args[:1]):
        return Outcome(SKIPPED, "formats a text")
    if _names_other_dtypes(call, args, kwargs):
        return Outcome(SKIPPED, "strings, objects, dates or records")
    changed = _changed_by(call)
    wanted = _attempt(lambda: _by_numpy(call, changed))
    skipped = _not_comparable(call, wanted)
    if skipped:
        return Outcome(SKIPPED, skipped)
    if eagerly:
        return _judged(call, wanted, _attempt(lambda: _eager(call, changed)))
    paths = _traced_paths(call, args, kwargs)
    if not paths:
        return Outcome(SKIPPED, "no array among the arguments")
    outcome = _judged(call, wanted, _attempt(lambda: _jitted(call, paths, changed)))
    if outcome.kind in (REFUSED, RAW, DESIGN) and len(paths) > 1:
        for kept in _with_fewer(call, paths):
            if not changed.issubset(kept):
                continue
            again = _judged(call, wanted, _attempt(lambda kept=kept: _jitted(call, kept, changed)))
            if again.kind == SAME:
                return Outcome(STATIC, outcome.detail)
    return outcome


def _names_other_dtypes(call: Call, args: Any, kwargs: Any) -> bool:
    """Whether a dtype of an argument is one that arrays of ours do not have."""
    at = {"ndarray.astype": 1, "ndarray.view": 1, "numpy.array": 1, "numpy.asarray": 1}
    place = at.get(call.target, len(args))
    given = [kwargs.get("dtype"), *args[place : place + 1]]
    for dtype in given:
        try:
            found = np.dtype(dtype) if isinstance(dtype, (str, type, np.dtype)) else None
        except TypeError:
            continue
        if found is not None and (found.kind not in calls.DATA_KINDS or found.subdtype):
            return True
    return False


Path = tuple[Any, ...]
"""Where an argument is: (0, 2) is the third element of the first positional one."""


def _with_fewer(call: Call, paths: Sequence[Path]) -> Iterator[list[Path]]:
    """Selections of arguments to trace, the others being static."""
    yield list(paths[:1])
    yield [p for p in paths if p[0] == paths[0][0]]
    yield list(paths[1:])


def _judged(call: Call, wanted: _Given, got: _Given) -> Outcome:
    if wanted.error is None and got.error is None:
        detail = difference(call, wanted.value, got.value)
        if not detail:
            return Outcome(SAME)
        kind = DIFFERS
    elif wanted.error is None:
        error = got.error
        ours = type(error).__module__.startswith("tracegraph")
        kind, detail = REFUSED if ours else RAW, _line(error)
    elif got.error is None:
        if _raises_for_values(call):
            return Outcome(BY_VALUE, _line(wanted.error))
        kind, detail = ACCEPTED, _line(wanted.error)
    elif _agrees(wanted.error, got.error):
        return Outcome(SAME)
    else:
        kind, detail = DIFFERS, f"raises {_line(got.error)}, NumPy {_line(wanted.error)}"
    reason = reason_for(call, kind, detail, got.error)
    return Outcome(DESIGN, reason) if reason else Outcome(kind, detail)


def _line(error: Any) -> str:
    return f"{type(error).__name__}: {str(error).partition(chr(10))[0][:200]}"


_CLASSES = (TypeError, ValueError, IndexError, OverflowError, np.linalg.LinAlgError)


def _agrees(wanted: Exception, got: Exception) -> bool:
    """Whether a handler of NumPy's error catches ours, or ours says that it is not supported."""
    if isinstance(got, (errors.UnsupportedByTracerError, errors.TracerMisuseError)):
        return True
    classes = [c for c in _CLASSES if isinstance(wanted, c)]
    return not classes or any(isinstance(got, c) for c in classes)


def _by_numpy(call: Call, changed: set[Path]) -> Any:
    args, kwargs = call.arguments
    result = calls.apply(call.target, args, kwargs)
    return result, [_at(args, kwargs, p) for p in sorted(changed, key=str)]


def _eager(call: Call, changed: set[Path]) -> Any:
    args, kwargs = call.arguments
    for path in _paths(args, kwargs):
        if path not in changed:
            args, kwargs = _replaced(args, kwargs, path, Array(_at(args, kwargs, path)))
    result = _applied(call, args, kwargs)
    return result, [_at(args, kwargs, p) for p in sorted(changed, key=str)]


def _jitted(call: Call, paths: Sequence[Path], changed: set[Path]) -> Any:
    """The result of a call with the arguments at these paths traced, those changed as copies."""
    args, kwargs = call.arguments
    held: list[Any] = []

    def function(values: list[Any]) -> list[Any]:
        positional, named = call.arguments
        same: dict[int, Any] = {}
        for path, value in zip(paths, values, strict=True):
            original = id(_at(args, kwargs, path))
            if path in changed:
                value = same.setdefault(original, value.copy())
            positional, named = _replaced(positional, named, path, value)
        result = _applied(call, positional, named)
        whole = (result, [_at(positional, named, p) for p in sorted(changed, key=str)])
        arrays: list[Any] = []
        held[:] = [_without_tracers(whole, arrays)]
        return arrays

    jitted = tracegraph.jit(function, device="host")
    results = jitted([_at(args, kwargs, p) for p in paths])
    return _with_arrays(held[0], [np.asarray(r) for r in results])


def _applied(call: Call, args: Sequence[Any], kwargs: Any) -> Any:
    """Call NumPy's function, or that of `tracegraph.numpy` where NumPy's sees no traced value."""
    function = calls.function_of(call.target)
    if isinstance(function, BuiltinFunctionType) and call.target.startswith("numpy."):
        name = call.target.removeprefix("numpy.")
        own: Any = getattr(tnp, name, None)
        if own is not None:
            return own(*args, **kwargs)
    elif not hasattr(function, "_implementation") and call.target.count(".") == 1:
        name = call.target.removeprefix("numpy.")
        if call.target.startswith("numpy.") and not isinstance(function, np.ufunc):
            return getattr(tnp, name, function)(*args, **kwargs)
    return calls.apply(call.target, args, kwargs)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where an array of the results was."""

    index: int


def _without_tracers(value: Any, arrays: list[Any]) -> Any:
    if isinstance(value, Selected):  # x[mask], whose shape depends on elements
        raise errors.BooleanMaskError(value.mask)
    if isinstance(value, Tracer):
        arrays.append(value)
        return _Place(len(arrays) - 1)
    if isinstance(value, (list, tuple)):
        parts = [_without_tracers(v, arrays) for v in value]
        return parts if isinstance(value, list) else tuple(parts)
    return value


def _with_arrays(value: Any, arrays: Sequence[Any]) -> Any:
    if isinstance(value, _Place):
        return arrays[value.index]
    if isinstance(value, (list, tuple)):
        parts = [_with_arrays(v, arrays) for v in value]
        return parts if isinstance(value, list) else tuple(parts)
    return value


def _attempt(function: Callable[[], Any]) -> _Given:
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"), _limit(SECONDS):
            warnings.simplefilter("ignore")
            return _Given(function())
    except Exception as error:
        return _Given(error=error.with_traceback(None))


@contextmanager
def _limit(seconds: int) -> Iterator[None]:
    def stop(*_: Any) -> None:
        raise TimeoutError(f"more than {seconds} seconds")

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)


def _not_comparable(call: Call, wanted: _Given) -> str:
    if isinstance(wanted.error, TimeoutError):
        return "NumPy takes too long"
    for x in _flat(wanted.value):
        if isinstance(x, (np.ndarray, np.generic)):
            if type(x) not in (np.ndarray,) and not isinstance(x, np.generic):
                return "the result is a subclass of arrays"
            if x.dtype.kind not in calls.DATA_KINDS or x.dtype.char in "gG":
                return "the result is of strings, objects, dates, records or long doubles"
            if not x.dtype.isnative:
                return "the result has bytes in foreign order"
        elif not isinstance(x, (bool, int, float, complex, str, type(None), np.dtype, type)):
            return "the result is no array"
    return ""


def _flat(value: Any) -> Iterator[Any]:
    if isinstance(value, (list, tuple)):
        for part in value:
            yield from _flat(part)
    else:
        yield value


def _paths(args: Any, kwargs: Any) -> Iterator[Path]:
    """Where arrays are among arguments."""

    def within(value: Any, path: Path) -> Iterator[Path]:
        if isinstance(value, np.ndarray):
            yield path
        elif isinstance(value, (list, tuple)):
            for k, part in enumerate(value):
                yield from within(part, (*path, k))

    yield from within(args, ())
    for name, value in kwargs.items():
        yield from within(value, (name,))


def _traced_paths(call: Call, args: Any, kwargs: Any) -> list[Path]:
    """Arguments to trace: arrays; and NumPy's scalars that stand where an operand does."""
    if call.target in OF_SHAPES:
        return []
    found = list(_paths(args, kwargs))
    function = calls.function_of(call.target)
    operands = function.nin if isinstance(function, np.ufunc) else 1
    if call.target.startswith("operator."):
        operands = 1 if call.target.endswith("item") else 2
    scalars = [(k,) for k, x in enumerate(args[:operands]) if isinstance(x, np.generic)]
    return sorted([*found, *scalars], key=lambda p: (isinstance(p[0], str), str(p)))


def _at(args: Any, kwargs: Any, path: Path) -> Any:
    value = kwargs[path[0]] if isinstance(path[0], str) else args[path[0]]
    for k in path[1:]:
        value = value[k]
    return value


def _replaced(args: Any, kwargs: Any, path: Path, value: Any) -> tuple[Any, Any]:
    def within(whole: Any, rest: Path) -> Any:
        if not rest:
            return value
        parts = list(whole)
        parts[rest[0]] = within(parts[rest[0]], rest[1:])
        return parts if isinstance(whole, list) else tuple(parts)

    if isinstance(path[0], str):
        return args, {**kwargs, path[0]: within(kwargs[path[0]], path[1:])}
    return within(args, path), kwargs


_IN_PLACE = re.compile(
    r"operator\.(i(?!nvert)[a-z]+|setitem)|ndarray\.(sort|partition|fill|put)"
    r"|numpy\.(put|place|putmask|copyto|fill_diagonal|put_along_axis|.*\.at)"
)
"""Functions that write to their first argument, elements that stay the same included."""


def _changed_by(call: Call) -> set[Path]:
    """Where the arrays are that NumPy writes to, those given as `out` included."""
    args, kwargs = call.arguments
    before, before_named = copy.deepcopy((args, kwargs))
    _attempt(lambda: calls.apply(call.target, args, kwargs))
    results = _places_of_results(call, len(args))
    changed = {
        p
        for p in _paths(args, kwargs)
        if p[0] in results
        or (p == (0,) and _IN_PLACE.fullmatch(call.target))
        or (
            not kwargs.get("overwrite_input")
            and _bytes(_at(args, kwargs, p)) != _bytes(_at(before, before_named, p))
        )
    }
    identities = {id(_at(args, kwargs, p)) for p in changed}
    return {p for p in _paths(args, kwargs) if id(_at(args, kwargs, p)) in identities}


def _places_of_results(call: Call, count: int) -> Sequence[Any]:
    """Where arrays to write to are among arguments."""
    function = calls.function_of(call.target)
    if isinstance(function, np.ufunc):
        return ("out", *range(function.nin, count))
    name = call.target.rpartition(".")[2]
    if call.group == "methods of ufuncs":
        return ("out", {"reduce": 3, "accumulate": 3, "reduceat": 4}.get(name, "out"))
    try:
        parameters = inspect.signature(getattr(np, name, function)).parameters
    except (TypeError, ValueError):
        return ("out",)
    if "out" not in parameters or parameters["out"].kind is inspect.Parameter.KEYWORD_ONLY:
        return ("out",)
    return ("out", list(parameters).index("out"))


def _bytes(array: Any) -> tuple[Any, ...]:
    return array.tobytes(), array.shape, array.dtype


_FILLS: Sequence[Callable[[tuple[int, ...], Any], Any]] = (
    lambda shape, dtype: np.zeros(shape, dtype),
    lambda shape, dtype: np.ones(shape, dtype),
    lambda shape, dtype: np.arange(int(np.prod(shape))).reshape(shape).astype(dtype),
    lambda shape, dtype: np.random.default_rng(0).uniform(1, 99, shape).astype(dtype),
    lambda shape, dtype: (
        (np.eye(shape[-2], shape[-1]) if len(shape) > 1 else np.ones(1)).astype(dtype)
        + np.zeros(shape, dtype)
    ),
)


def _raises_for_values(call: Call) -> bool:
    """Whether NumPy accepts arrays of the same types with other elements."""
    for fill in _FILLS:
        args, kwargs = call.arguments
        for path in _traced_paths(call, args, kwargs):
            array = _at(args, kwargs, path)
            args, kwargs = _replaced(args, kwargs, path, fill(array.shape, array.dtype))
        if _attempt(lambda a=args, k=kwargs: calls.apply(call.target, a, k)).error is None:
            return True
    return False
