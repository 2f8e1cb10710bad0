"""Conversions of traced values name the user's own expression, and what to write instead of it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracegraph
from tracegraph import errors

X = np.arange(12.0).reshape(3, 4)
TABLE = np.arange(5.0)
LIST = [1, 2, 3]


def assigns(x: Any, n: Any) -> Any:
    out = np.zeros(3)
    out[0] = x[0, 0]
    return out


def assigns_rows(x: Any, n: Any) -> Any:
    out = np.zeros((3, 4))
    out[:, 1:3] = x[:, :2]
    return out


def assigns_at_a_traced_place(x: Any, n: Any) -> Any:
    out = np.ones((3, 4), dtype=int)
    if out.size:
        out = np.full((3, 4), 1.5)  # the last one before the line counts
    out[n] = 1
    out = [np.zeros(7)]
    return out[0]


def assigns_to_what_a_library_made(x: Any, n: Any) -> Any:
    out = np.random.default_rng(0).random(3)
    out[0] = x[0, 0]
    return out


def assigns_to_an_argument(x: Any, n: Any, out: Any = TABLE) -> Any:
    out[0] = x[0, 0]
    return out


def assigns_a_long_creation(x: Any, n: Any) -> Any:
    out = np.zeros((len([1, 2, 3]) + len([1, 2, 3]) + len([1, 2, 3]) + len([1, 2, 3]), 1))
    out[0] = x[0, 0]
    return out


def long_line(x: Any, n: Any) -> Any:
    return np.array(
        [x[0, 0] + 1, x[0, 0] + 2, x[0, 0] + 3, x[0, 0] + 4],
        dtype=np.float32,
    )


def several_on_one_line(x: Any, n: Any) -> Any:
    return x.sum() + np.abs(TABLE[0]) + np.float32(n) + TABLE[1]


def of_package(x: Any, n: Any) -> Any:
    return pytest.approx(x) == x


CASES: list[tuple[Callable[[Any, Any], Any], str, str]] = [
    (lambda x, n: np.array([n, n]), "np.array([n, n])", "numpy.stack"),
    (lambda x, n: np.asarray(x, np.float32), "np.asarray(x, np.float32)", "numpy.asarray"),
    (lambda x, n: np.float32(n), "np.float32(n)", "n.astype(numpy.float32)"),
    (lambda x, n: np.float32(x[0] + 1), "np.float32(x[0] + 1)", "x.astype(numpy.float32)"),
    (lambda x, n: np.uint32(n), "np.uint32(n)", "n.astype(numpy.uint32)"),
    (lambda x, n: x.dtype.type(n), "x.dtype.type(n)", "n.astype(numpy.float64)"),
    (lambda x, n: int(n), "int(n)", "n.astype(int)"),
    (lambda x, n: float(n), "float(n)", "n.astype(float)"),
    (lambda x, n: complex(n), "complex(n)", "n.astype(complex)"),
    (lambda x, n: math.sin(n), "math.sin(n)", "numpy.sin"),
    (lambda x, n: list(range(n)), "range(n)", "tracegraph.fori_loop"),
    (lambda x, n: np.full(3, n), "np.full(3, n)", "tracegraph.numpy.full"),
    (lambda x, n: np.sum([n, n]), "np.sum([n, n])", "tracegraph.numpy.sum"),
    (lambda x, n: np.full(n, 3), "np.full(n, 3)", "static_argnums"),
    (lambda x, n: np.zeros((n, 2)), "np.zeros((n, 2))", "static_argnums"),
    (lambda x, n: np.arange(n), "np.arange(n)", "static_argnums"),
    (lambda x, n: np.eye(n), "np.eye(n)", "static_argnums"),
    (lambda x, n: np.linspace(0, 1, n), "np.linspace(0, 1, n)", "static_argnums"),
    (lambda x, n: np.mgrid[0:n], "np.mgrid[0:n]", "static_argnums"),
    (lambda x, n: np.r_[x[0], n], "np.r_[x[0], n]", "write tracegraph.numpy.r_["),
    (lambda x, n: np.c_[x, x], "np.c_[x, x]", "write tracegraph.numpy.c_["),
    (lambda x, n: TABLE[n], "TABLE[n]", "tracegraph.numpy.asarray(TABLE)[n]"),
    (lambda x, n: TABLE[n : n + 2], "TABLE[n:n + 2]", "numpy.arange(size)"),
    (lambda x, n: LIST[n], "LIST[n]", "tracegraph.switch"),
    (lambda x, n: LIST[n:], "LIST[n:]", "numpy.arange(size)"),
    (lambda x, n: [1, 2][n], "[1, 2][n]", "tracegraph.switch"),
    (lambda x, n: np.random.normal(x), "np.random.normal(x)", "write tracegraph.random.normal"),
    (of_package, "pytest.approx(x)", "works on the elements of NumPy arrays"),
    (
        assigns,
        "the assignment out[0] = ...",
        "write out = tracegraph.numpy.zeros(3) instead of out = np.zeros(3) in line 21",
    ),
    (
        assigns_rows,
        "the assignment out[:, 1:3] = ...",
        "write out = tracegraph.numpy.zeros((3, 4)) instead of out = np.zeros((3, 4)) in line 27",
    ),
    (
        assigns_at_a_traced_place,
        "the assignment out[n] = ...",
        "write out = tracegraph.numpy.full((3, 4), 1.5) instead of out = np.full((3, 4), 1.5)",
    ),
    (
        assigns_to_what_a_library_made,
        "the assignment out[0] = ...",
        "tracegraph.numpy.zeros(shape)",
    ),
    (assigns_to_an_argument, "the assignment out[0] = ...", "tracegraph.numpy.zeros(shape)"),
    (
        assigns_a_long_creation,
        "the assignment out[0] = ...",
        "write out = tracegraph.numpy.zeros(...) instead of out = np.zeros(...)",
    ),
    (long_line, "np.array(...)", "tracegraph.numpy.array"),
    (several_on_one_line, "np.float32(n)", "n.astype(numpy.float32)"),
]

IDS = [f"{quoted} in {function.__name__}" for function, quoted, _ in CASES]


@pytest.mark.parametrize(("function", "quoted", "advice"), CASES, ids=IDS)
def test_the_expression_is_quoted_with_its_advice(
    function: Callable[[Any, Any], Any], quoted: str, advice: str
) -> None:
    with pytest.raises(errors.TracerMisuseError) as caught:
        tracegraph.jit(function, device="host")(X, 2)
    message = str(caught.value)
    assert message.startswith(f"{quoted} needs the elements of a traced value of type ")
    instead = message.partition("; ")[2]
    assert advice in instead
    assert len(instead) < 300
    assert "at test_conversions.py:" in message


@pytest.mark.parametrize("name", ["item", "tolist", "tobytes"])
def test_methods_name_themselves(name: str) -> None:
    with pytest.raises(errors.TracerItemError, match=rf"^\.{name}\(\) needs"):
        tracegraph.jit(lambda x: getattr(x, name)(), device="host")(X)


def test_without_source_the_message_covers_all_cases() -> None:
    names: dict[str, Any] = {"np": np}
    exec("def f(x): return np.float32(x)", names)
    with pytest.raises(errors.TracerArrayError, match=r"^conversion to a NumPy array"):
        tracegraph.jit(names["f"], device="host")(X)


def test_what_is_advised_works() -> None:
    tnp = tracegraph.numpy

    def f(x: Any, n: Any) -> Any:
        return (
            tnp.array([n, n]), n.astype(np.float32), tnp.full(3, n), tnp.sum([n, n]),
            tnp.asarray(TABLE)[n], tnp.asarray(LIST)[n], tnp.asarray(TABLE)[n + np.arange(2)],
            np.column_stack([x, x]),
        )  # fmt: skip

    got = tracegraph.jit(f, device="host")(X, 1)
    wanted = (
        [1, 1], np.float32(1), [1, 1, 1], 2, TABLE[1], LIST[1], TABLE[1:3], np.c_[X, X]
    )  # fmt: skip
    for a, b in zip(got, wanted, strict=True):
        np.testing.assert_array_equal(np.asarray(a), b)


def test_ufuncs_of_other_libraries_keep_their_name() -> None:
    special = pytest.importorskip("scipy.special")
    for name in ("struve", "loggamma", "hyp2f1"):
        function = getattr(special, name)
        with pytest.raises(errors.UnsupportedByTracerError, match=rf"^scipy\.special\.{name} is"):
            tracegraph.jit(lambda x, f=function: f(*[x] * f.nin), device="host")(X)


def adds_in_place(out: Any, x: Any) -> None:
    out += x


WRITES: dict[str, Callable[[Any, Any], Any]] = {
    "+=": adds_in_place,
    "add.at": lambda out, x: np.add.at(out, [0, 0], x[:2]),
    "out=": lambda out, x: np.multiply(x, 2, out=out),
    "sum(out=)": lambda out, x: np.sum(x, keepdims=True, out=out[:1]),
    "copyto": lambda out, x: np.copyto(out, x),
    "reduceat(out=)": lambda out, x: np.add.reduceat(x, [0, 1, 2], out=out),
}


@pytest.mark.parametrize("name", WRITES)
def test_other_writes_to_numpys_arrays_say_what_to_make_instead(name: str) -> None:
    def f(x: Any, make: Callable[[int], Any]) -> Any:
        out = make(3)
        WRITES[name](out, x)
        return out

    x = np.arange(1.0, 4)
    with pytest.raises(errors.UnsupportedByTracerError) as caught:
        tracegraph.jit(f, device="host", static_argnums=1)(x, np.zeros)
    assert "tracegraph.numpy.zeros or numpy.zeros_like" in str(caught.value)
    assert "at test_conversions.py:" in str(caught.value)
    found = tracegraph.jit(f, device="host", static_argnums=1)(x, tracegraph.numpy.zeros)
    np.testing.assert_array_equal(np.asarray(found), f(x, np.zeros))
