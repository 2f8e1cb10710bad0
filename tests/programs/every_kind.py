"""A program with every kind of node that graphs can hold, at the top and in bodies where allowed.

`KINDS_ON_TOP` and `KINDS_IN_BODIES` are what its graph must have. What it counts, callbacks and C
functions called, tells whether each launch ran each of them once.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import tracegraph
from tests.cases.custom_functions import picked, strongest
from tests.cases.custom_kernels import saxpy
from tracegraph import ArrayType, cond, debug, event, fori_loop, switch, while_loop
from tracegraph.numpy import top_k

N = 256
ORDER = 130
"""Rows of the matrix: from here on, its products and factorizations are library calls."""
STEPS = 3
"""Iterations of each loop."""

VECTOR = ArrayType("float64", (N,))

KINDS_ON_TOP = {
    *("kernel", "persistent", "copy", "sort", "selection", "custom kernel", "library", "host"),
    *("event", "graph", "if_else", "switch", "while"),
}
"""Classes of nodes of a Plan; copies move arguments to where library calls read them."""

KINDS_IN_BODIES = {
    *("kernel", "sort", "selection", "custom kernel", "library", "graph", "if_else"),
}

LIBRARIES = {"matmul", "getrf", "fft", "rfft", "captured call"}
"""Calls of libraries among its nodes: the first words of their texts."""


class Semaphore:
    """A POSIX semaphore, which C functions post: it counts their calls."""

    SIZE = 64
    """Bytes, more than a ``sem_t`` has."""

    def __init__(self) -> None:
        self.library = ctypes.CDLL(None)
        self.memory = ctypes.create_string_buffer(self.SIZE)
        assert self.library.sem_init(self.memory, 0, 0) == 0

    @property
    def post(self) -> Any:
        """The C function that adds one, to be called with `address`."""
        return self.library.sem_post

    @property
    def address(self) -> int:
        """Where it is."""
        return ctypes.addressof(self.memory)

    @property
    def value(self) -> int:
        """How often it was posted."""
        found = ctypes.c_int()
        self.library.sem_getvalue(self.memory, ctypes.byref(found))
        return found.value


@dataclass
class Outside:
    """What the program uses of others: a graph that doubles `at` into `out`, a function to capture
    that does the same, and two events. Handles and types stand for them where no GPU is.
    """

    graph: Any = 1
    at: Any = VECTOR
    out: Any = VECTOR
    doubles: Callable[..., None] = lambda stream, x, y: None
    done: Any = 0x5000
    ready: Any = 0x6000
    semaphore: Semaphore = field(default_factory=Semaphore)
    calls: int = 0
    """Calls of `debug.callback`."""
    questions: int = 0
    """Calls of `pure_callback`."""

    def embedded(self, x: Any) -> Any:
        """2 x, by the graph."""
        return tracegraph.embed(self.graph, reads=x, at=self.at, out=self.out, host=_doubled)

    def count(self, value: Any) -> None:
        """Called by the program, which waits for nothing."""
        self.calls += 1

    def answer(self, value: Any) -> Any:
        """Called by the program, which waits for the answer."""
        self.questions += 1
        return value + 1


def _doubled(x: Any) -> Any:
    return 2 * x


PRINTS, CALLS, QUESTIONS, POSTS = 1 + STEPS, 1 + STEPS, 1 + STEPS, 2
"""What a launch prints, calls and asks."""


def program_of(outside: Outside) -> Callable[..., Any]:
    """The program: of a vector, a matrix, and a number from 0 to 2 that chooses a branch."""
    captured = tracegraph.capture(outside.doubles, out=lambda x: x, host=_doubled)

    def asked(x: Any) -> Any:
        return tracegraph.pure_callback(outside.answer, ArrayType("float64", ()), x)

    def step(carry: Any) -> Any:
        """A body: all that bodies may hold."""
        i, x, a = carry
        x = saxpy(0.5, x, x)  # a kernel of the user's, in place
        x = outside.embedded(picked(x, 1.0)) / 2
        a = solved(np.abs(a @ a) % 7)
        x = np.sort(captured(x) / 3) + asked(top_k(a, 2)[0][0, 0])
        x = cond(i > 0, lambda x: np.cumsum(x)[::-1] / N, lambda x: x, x, schedule="conditional")
        debug.callback(outside.count, i)
        debug.print("step {}", i)
        return i + 1, x, a

    def solved(a: Any) -> Any:
        """By a factorization of a matrix that is far from singular."""
        return np.linalg.solve(a + 100 * ORDER * np.eye(ORDER), a)

    def polished(x: Any) -> Any:
        return fori_loop(0, STEPS, lambda i, y: (y + x / y) / 2, x + 1, schedule="one_kernel")

    branches = [
        lambda x: saxpy(2.0, x, x),
        lambda x: captured(x),
        lambda x: np.abs(np.fft.fft(x)),
    ]

    def program(x: Any, a: Any, k: Any) -> Any:
        tracegraph.host_call(outside.semaphore.post, outside.semaphore.address)
        debug.print("launch {}", k)
        debug.callback(outside.count, k)
        event.wait(outside.ready)
        with debug.timed("linear algebra"):
            b = solved(a @ a)
        y = np.sort(outside.embedded(captured(saxpy(1.5, x, picked(x, 2.0)))))
        event.record(outside.done, y)
        z = np.abs(np.fft.rfft(y)) + asked(y[0]) + captured(x)[: N // 2 + 1]
        y = switch(k, branches, y, schedule="conditional")
        y = cond(k > 0, lambda y: outside.embedded(y), lambda y: y, y, schedule="conditional")
        _, y, c = while_loop(
            lambda carry: carry[0] < STEPS, step, (0, y, a % 5), schedule="conditional"
        )
        y = polished(np.abs(y) + 1)
        tracegraph.host_call(outside.semaphore.post, outside.semaphore.address)
        return x, y, z, b, c, strongest(y), np.cumsum(y), *top_k(a, 3)

    return program


def arguments(k: int) -> tuple[Any, ...]:
    """Those of a launch: small integers, and the number of a branch."""
    random = np.random.default_rng(k)
    x = random.integers(1, 9, N).astype(float)
    return x, random.integers(0, 5, (ORDER, ORDER)).astype(float), np.int64(k % 3)
