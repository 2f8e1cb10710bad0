"""Runs NumPy's own tests, and records their calls of NumPy with arguments that are data."""

from __future__ import annotations

import functools
import hashlib
import operator
import os
import pickle
import types
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from .calls import DATA_KINDS, Call, Recording
from .left_out import FUNCTIONS, METHODS, OF_SHAPES
from .rewriting import rewrite_imports

FILES = {
    "_core": "array_coercion einsum function_base half indexerrors indexing item_selection "
    "mem_overlap multiarray nep50_promotions numeric protocols regression scalar_methods "
    "scalarmath shape_base ufunc umath umath_complex",
    "lib": "array_utils arraypad arraysetops function_base histograms index_tricks nanfunctions "
    "packbits polynomial regression shape_base stride_tricks twodim_base type_check ufunclike",
    "linalg": "deprecations linalg regression",
    "fft": "helper pocketfft",
}
"""By the folder in NumPy, the files of tests that are recorded."""

MOST_BYTES = 1 << 15
"""Calls with more bytes of arguments are left out."""

MOST_OF_A_TEST = 150
"""Calls of one function in one test, beyond which they are left out: loops over many numbers."""

_SPACES = {"numpy": np, "numpy.linalg": np.linalg, "numpy.fft": np.fft}
_RAISING = ("assert_raises", "assert_raises_regex", "raises")
_DATA = (bool, int, float, complex, str, bytes, slice, type(None), type(Ellipsis))


def record() -> Recording:
    """Run the tests in this process, and give their calls.

    Results are not kept: replaying computes them again, with warnings and errors of
    floating-point numbers at rest.
    """
    folder = Path(np.__file__).parent
    files = [
        folder / part / "tests" / f"test_{name}.py"
        for part, names in FILES.items()
        for name in names.split()
    ]
    recorder = _Recorder()
    rewrite_imports(files, recorder.call, recorder.operator)
    quiet = ["-q", "-p", "no:cacheprovider", "--assert=plain", "--tb=no"]
    chosen = ["-m", "not slow", "-k", "not threading and not leak", *map(str, files)]
    pytest.main(["-c", os.devnull, *quiet, *chosen], plugins=[recorder])
    return Recording(recorder.calls, recorder.left_out, np.__version__)


class _Recorder:
    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.left_out: Counter[str] = Counter()
        self._known: set[bytes] = set()
        self._of_tests: Counter[tuple[str, str]] = Counter()
        self._test = "import"

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._test = nodeid

    def call(self, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        self._note_call(function, args, kwargs)
        return function(*args, **kwargs)

    def operator(self, name: str, /, *operands: Any) -> Any:
        if isinstance(operands[0], (np.ndarray, np.generic)) or (
            len(operands) == 2 and isinstance(operands[1], (np.ndarray, np.generic))
        ):
            self._note(f"operator.{name}", operands, {})
        return getattr(operator, name)(*operands)

    def _note_call(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if getattr(function, "__name__", "") in _RAISING:
            at = 2 if function.__name__ == "assert_raises_regex" else 1
            if len(args) > at and callable(args[at]):
                self._note_call(args[at], args[at + 1 :], kwargs)
            return
        if isinstance(function, functools.partial):
            kwargs = {**function.keywords, **kwargs}
            self._note_call(function.func, (*function.args, *args), kwargs)
            return
        owner = getattr(function, "__self__", None)
        if isinstance(owner, (np.ndarray, np.generic)):
            name = function.__name__
            if name.startswith("__") or name in METHODS:
                self.left_out[METHODS.get(name, "called by its dunder")] += 1
            else:
                self._note(f"ndarray.{name}", (owner, *args), kwargs)
        elif isinstance(owner, np.ufunc):
            if getattr(np, owner.__name__, None) is owner:
                self._note(f"numpy.{owner.__name__}.{function.__name__}", args, kwargs)
        else:
            name = _names().get(id(function), "")
            if name in FUNCTIONS:
                self.left_out[FUNCTIONS[name]] += 1
            elif name:
                self._note(name, args, kwargs)

    def _note(self, target: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        group = (self._test.partition("[")[0], target)
        if self._of_tests[group] >= MOST_OF_A_TEST:
            self.left_out[f"after {MOST_OF_A_TEST} calls in one test"] += 1
            return
        self._of_tests[group] += 1
        values = (args, dict(kwargs))
        reason = next(_not_data(values), None)
        if reason is not None:
            self.left_out[reason] += 1
            return
        derived = not _holds_an_array(values)
        if derived and target not in OF_SHAPES:
            values = (_with_an_array(args), dict(kwargs))
        if not _holds_an_array(values):
            self.left_out["no array among the arguments"] += 1
            return
        if sum(x.nbytes for x in _leaves(values) if isinstance(x, np.ndarray)) > MOST_BYTES:
            self.left_out[f"more than {MOST_BYTES} bytes"] += 1
            return
        payload = pickle.dumps(values)
        key = hashlib.sha256(target.encode() + b"\0" + payload).digest()
        if key in self._known:
            self.left_out["the same call again"] += 1
        else:
            self._known.add(key)
            self.calls.append(Call(target, payload, self._test, derived))


def _holds_an_array(values: Any) -> bool:
    return any(isinstance(x, (np.ndarray, np.generic)) for x in _leaves(values))


@functools.cache
def _names() -> Mapping[int, str]:
    """The full names of NumPy's public functions, by their identities; classes are none."""
    return {
        id(value): f"{space}.{name}"
        for space, module in _SPACES.items()
        for name, value in sorted(vars(module).items(), reverse=True)
        if _is_function(value) and not name.startswith("_")
    }


def _is_function(value: Any) -> bool:
    module = getattr(value, "__module__", None) or "numpy"
    return (callable(value) and not isinstance(value, (type, types.ModuleType))) and (
        isinstance(value, np.ufunc) or module.startswith("numpy")
    )


def _with_an_array(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Arguments of a call without arrays, the first list or number of which is made an array."""
    for k, x in enumerate(args[:1]):
        if isinstance(x, (list, tuple, int, float, complex)) and not _is_empty(x):
            try:
                array = np.asarray(x)
            except (ValueError, OverflowError):
                return args
            if array.dtype.kind in DATA_KINDS:
                return (*args[:k], array, *args[k + 1 :])
    return args


def _is_empty(x: Any) -> bool:
    return isinstance(x, (list, tuple)) and not x


def _leaves(value: Any) -> Iterator[Any]:
    if type(value) in (list, tuple):
        for part in value:
            yield from _leaves(part)
    elif isinstance(value, dict):
        yield from _leaves(list(value.values()))
    else:
        yield value


def _not_data(values: Any) -> Iterator[str]:
    """Why arguments cannot be replayed; the first reason alone is asked for."""
    for x in _leaves(values):
        if isinstance(x, (np.ndarray, np.generic)):
            if type(x).__module__ != "numpy" or (isinstance(x, np.ndarray) and not _is_plain(x)):
                yield "a subclass of arrays"
            yield from _other_dtype(x.dtype)
        elif isinstance(x, np.dtype) or (isinstance(x, type) and issubclass(x, np.generic)):
            if isinstance(x, type) and x.__module__ != "numpy":
                yield "an object of another kind"
            elif isinstance(x, type) and issubclass(x, np.flexible):
                yield "strings, objects, dates or records"
            elif isinstance(x, np.dtype):
                yield from _other_dtype(x)
        elif isinstance(x, type):
            if x not in (bool, int, float, complex):
                yield "an object of another kind"
        elif x is not np._NoValue and type(x) not in _DATA and id(x) not in _names():
            yield "a function of the test" if callable(x) else "an object of another kind"


def _is_plain(x: Any) -> bool:
    return type(x) is np.ndarray


def _other_dtype(dtype: np.dtype[Any]) -> Iterator[str]:
    if dtype.kind not in DATA_KINDS:
        yield "strings, objects, dates or records"
    elif dtype.char in "gG":
        yield "long doubles"
    elif not dtype.isnative:
        yield "bytes in foreign order"
