"""Programs that call a C function between computations, on memory that both read.

The function adds 1 to an array, and notes its sum before. Each is a `program(x, call)`, and does
the same eagerly, jitted for the host, and jitted for a GPU that reads pinned memory.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import tracegraph
from tests.cases.custom_functions import strongest
from tests.cases.custom_kernels import saxpy
from tracegraph import ArrayType, cond, debug, fori_loop, scan, switch, while_loop

COMPILER = shutil.which("g++")

SOURCE = r"""
#include <stdlib.h>
#include <string.h>

struct Memory { double* data; long long size; double* sums; long long calls; };

struct Copies {
  char** targets; char** sources; long long* sizes; long long arrays; long long calls;
  long long call;
};

extern "C" void add_one(void* given) {
  Memory* memory = static_cast<Memory*>(given);
  double sum = 0;
  for (long long i = 0; i < memory->size; ++i) sum += memory->data[i];
  memory->sums[memory->calls++] = sum;
  for (long long i = 0; i < memory->size; ++i) memory->data[i] += 1;
}


extern "C" void overwrite(void* given) {
  Copies* copies = static_cast<Copies*>(given);
  if (copies->call == copies->calls) abort();
  for (long long i = 0; i < copies->arrays; ++i) {
    const char* source = copies->sources[copies->call * copies->arrays + i];
    memcpy(copies->targets[i], source, copies->sizes[i]);
  }
  ++copies->call;
}
"""

N = 900
"""Elements of the array."""

MOST_CALLS = 64

TYPE = ArrayType("float64", (N,))


class _Given(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("size", ctypes.c_longlong),
        ("sums", ctypes.c_void_p),
        ("calls", ctypes.c_longlong),
    )


@cache
def library() -> Any:
    """The C function, compiled once."""
    assert COMPILER is not None
    with tempfile.TemporaryDirectory() as folder:
        source, built = Path(folder) / "add_one.cpp", Path(folder) / "add_one.so"
        source.write_text(SOURCE)
        subprocess.run([COMPILER, "-O1", "-shared", "-fPIC", "-o", built, source], check=True)
        return ctypes.CDLL(str(built))


class Memory:
    """An array that the C function writes to, as zeros, and the sums that it has noted."""

    def __init__(self, array: Any = None, owner: Any = None) -> None:
        self.array = np.zeros(N) if array is None else array
        self.owner = self.array if owner is None else owner
        self.sums = np.zeros(MOST_CALLS)
        self.given = _Given(self.array.ctypes.data, N, self.sums.ctypes.data, 0)
        self.clear()

    def clear(self) -> None:
        """Start again with zeros."""
        self.array[:] = 0
        self.given.calls = 0

    def owned(self, device: str) -> Any:
        """The array as an argument."""
        return tracegraph.owned(self.array.ctypes.data, TYPE, owner=self.owner, device=device)

    def call(self) -> None:
        """Call the C function."""
        function = library().add_one
        function.argtypes, function.restype = [ctypes.POINTER(_Given)], None
        tracegraph.host_call(function, ctypes.pointer(self.given))

    @property
    def noted(self) -> list[float]:
        """The sums that it has found."""
        return self.sums[: self.given.calls].tolist()


class _Copies(ctypes.Structure):
    _fields_ = (
        ("targets", ctypes.c_void_p),
        ("sources", ctypes.c_void_p),
        ("sizes", ctypes.c_void_p),
        ("arrays", ctypes.c_longlong),
        ("calls", ctypes.c_longlong),
        ("call", ctypes.c_longlong),
    )


class Overwritten:
    """Arrays that each call of a C function overwrites with others."""

    def __init__(self, first: Sequence[np.ndarray[Any, Any]], calls: int) -> None:
        self.first = first
        self.arrays = [np.empty_like(array, order="C") for array in first]
        random = np.random.default_rng(calls)
        self.others = [
            [random.permutation(array.reshape(-1)).reshape(array.shape).copy() for array in first]
            for _ in range(calls)
        ]
        self.addresses = [
            np.array([array.ctypes.data for array in self.arrays], np.int64),
            np.array([a.ctypes.data for arrays in self.others for a in arrays], np.int64),
            np.array([array.nbytes for array in self.arrays], np.int64),
        ]
        found = [each.ctypes.data for each in self.addresses]
        self.given = _Copies(*found, len(first), calls, 0)

    def clear(self) -> None:
        """Start again."""
        for array, first in zip(self.arrays, self.first, strict=True):
            array[...] = first
        self.given.call = 0

    def call(self) -> None:
        """Call the C function."""
        function = library().overwrite
        function.argtypes, function.restype = [ctypes.c_void_p], None
        tracegraph.host_call(function, ctypes.pointer(self.given))


Call = Callable[[], None]

PROGRAMS: dict[str, Callable[[Any, Call], Any]] = {}


def program(function: Callable[[Any, Call], Any]) -> Callable[[Any, Call], Any]:
    """Add a program to `PROGRAMS`."""
    PROGRAMS[function.__name__] = function
    return function


@program
def equal_reads(x: Any, call: Call) -> Any:
    first = x.sum()
    call()
    second = x.sum()
    call()
    return first, second, x.sum(), x.max()


@program
def values_used_behind(x: Any, call: Call) -> Any:
    y, z, w = x + 1, np.positive(x), x * 1
    call()
    return y, z, w, x + 1, y + x, (x + 1) * 2 - y


@program
def views_used_behind(x: Any, call: Call) -> Any:
    part, square, spread = x[10:20], x.reshape(30, 30).T, np.broadcast_to(x, (2, N))
    call()
    return part, square.sum(axis=0), x[0] + 0, part + 1, spread[1], x


@program
def elements_used_behind(x: Any, call: Call) -> Any:
    """Unlike a part of an array, an element is a copy."""
    first = x[0]
    call()
    return first, first + 1, np.broadcast_to(first, (3,)), x[0]


@program
def what_is_returned(x: Any, call: Call) -> Any:
    y = x + 2
    call()
    call()
    return x, y, x[::-1]


@program
def one_behind_the_other(x: Any, call: Call) -> Any:
    call()
    y = np.cumsum(x)
    call()
    z = np.cumsum(x) + y
    call()
    call()
    return y, z, y * z


@program
def between_loops(x: Any, call: Call) -> Any:
    def sums(n: Any) -> Any:
        return while_loop(lambda c: c[1] < n, lambda c: (c[0] + x, c[1] + 1), (x, 0))[0]

    first = sums(3)
    call()
    second = sums(3)
    call()
    return first, second, first - second, sums(2)


@program
def between_loops_in_one_kernel(x: Any, call: Call) -> Any:
    def sums() -> Any:
        return fori_loop(0, 50, lambda i, c: c + x * i, x * 0, schedule="one_kernel")

    first = sums()
    call()
    return first, sums()


@program
def between_conditional_loops(x: Any, call: Call) -> Any:
    def sums() -> Any:
        step = lambda i, c: np.sort(c + x)[::-1]  # noqa: E731
        return fori_loop(0, 4, step, x * 0, schedule="conditional")

    first = sums()
    call()
    second = sums()
    call()
    return first, second, sums()


@program
def between_scans(x: Any, call: Call) -> Any:
    rows = x.reshape(30, 30)
    first = scan(lambda c, row: (c + row, c.sum()), rows[0] * 0, rows)
    call()
    return first, scan(lambda c, row: (c + row, c.sum()), rows[0] * 0, rows)


@program
def between_branches(x: Any, call: Call) -> Any:
    def chosen() -> Any:
        one = cond(x[0] > 0, lambda: np.cumsum(x), lambda: x - 1, schedule="conditional")
        other = switch(x[1].astype("i8"), [lambda: np.sort(x), lambda: x * 2, lambda: x - 3])
        return one, other

    first = chosen()
    call()
    second = chosen()
    call()
    return first, second, chosen()


@program
def between_library_calls(x: Any, call: Call) -> Any:
    def computed() -> Any:
        a = x.reshape(30, 30) + np.eye(30)
        return a @ a, x.reshape(30, 30) @ x.reshape(30, 30), np.abs(np.fft.rfft(x))[:1]

    first = computed()
    call()
    return first, computed()


@program
def between_factorizations(x: Any, call: Call) -> Any:
    def solved() -> Any:
        a = x.reshape(30, 30) + 50 * np.eye(30) + np.arange(30)
        return np.linalg.solve(a, x[:30]), np.linalg.inv(a), np.linalg.cholesky(a @ a.T), a

    first = solved()
    call()
    return first, solved()


@program
def what_needs_no_memory(x: Any, call: Call) -> Any:
    """Constants, and what is computed from indices alone."""
    grid, ones = np.arange(N) * 2.0, np.ones((N,))
    total = (grid + 0).sum()
    call()
    return grid + x, ones * x, total, np.eye(3) + x[0], (x * ones).sum() - total


@program
def under_a_gradient(x: Any, call: Call) -> Any:
    def f(v: Any) -> Any:
        first = (v * v).sum()
        call()
        return first * 2 + (v * v * v).sum()

    return tracegraph.grad(f)(x), tracegraph.grad(tracegraph.checkpoint(f))(x), x.sum()


@program
def what_a_derivative_does_not_need(x: Any, call: Call) -> Any:
    def f(v: Any) -> Any:
        first = (v * v).sum()
        call()
        return first * 2 + v.sum()

    return tracegraph.grad(f)(x), tracegraph.jvp(f, (x,), (x * 0 + 1,))


@program
def between_sorts(x: Any, call: Call) -> Any:
    first = np.sort(x), np.argsort(x, kind="stable")
    call()
    return first, np.sort(x), np.argsort(x, kind="stable")


@program
def between_kernels_of_the_user(x: Any, call: Call) -> Any:
    first = saxpy(2.0, x, x), strongest(x)
    call()
    return first, saxpy(2.0, x, x), strongest(x)


@program
def beside_a_chain(x: Any, call: Call) -> Any:
    """What depends on no memory waits as well, and is right in any case."""
    chain = np.cumsum(np.sort(np.arange(N) * 7 % 31))
    call()
    chain = np.cumsum(np.sort(chain % 17))
    y = x.sum() + chain[-1]
    call()
    return chain, y, x.sum() + np.cumsum(chain)[-1]


@program
def among_prints_and_callbacks(x: Any, call: Call) -> Any:
    debug.print("{}", x[0])
    call()
    debug.callback(lambda value: None, x.sum())
    y = x.sum()
    call()
    debug.print("{} {}", x[1], y)
    return y, x.sum()


@program
def under_vmap(x: Any, call: Call) -> Any:
    def row(v: Any) -> Any:
        first = v.sum()
        call()
        return first, v.sum()

    return tracegraph.vmap(row)(x.reshape(30, 30) + 0), x.sum()


@program
def inside_a_nested_jit(x: Any, call: Call) -> Any:
    @tracegraph.jit
    def inner(v: Any) -> Any:
        first = v.sum()
        call()
        return first, v.sum()

    return inner(x), x.sum()


@program
def inside_a_function_with_a_derivative(x: Any, call: Call) -> Any:
    @tracegraph.custom_jvp
    def inner(v: Any) -> Any:
        first = v.sum()
        call()
        return first + v.sum()

    inner.defjvp(lambda primals, tangents: (inner(*primals), tangents[0].sum()))
    before = x.sum()
    return before, inner(x), x.sum()
