"""Errors quote the user's expression and say what to write; what they say works."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import numpy
import numpy as np
import pytest

import tracegraph
from tracegraph import errors

T = np.array([3.0, 2.0, 1.0, 5.0])
HELD = SimpleNamespace(table=np.arange(16.0).reshape(4, 4), by_name={"a": T})
LIST = [1.0, 2.0, 3.0]
X = np.array([2.0, 0.5, 1.0, 3.0])

NAMES = {"numpy": numpy, "np": np, "tracegraph": tracegraph, "T": T, "HELD": HELD, "LIST": LIST}

ADVISED = {
    # constant tables at a traced index
    "np.eye(4)[i]": "tracegraph.numpy.asarray(np.eye(4))[i]",
    "np.array([3, 2, 1])[i]": "tracegraph.numpy.asarray(np.array([3, 2, 1]))[i]",
    "np.linspace(0, 1, 5)[i]": "tracegraph.numpy.asarray(np.linspace(0, 1, 5))[i]",
    "T[i]": "tracegraph.numpy.asarray(T)[i]",
    "(T * 2)[i]": "tracegraph.numpy.asarray(T * 2)[i]",
    "T[1:][i]": "tracegraph.numpy.asarray(T[1:])[i]",
    "HELD.table[i, 0]": "tracegraph.numpy.asarray(HELD.table)[i, 0]",
    "HELD.table[i, i]": "tracegraph.numpy.asarray(HELD.table)[i, i]",
    "HELD.table[[i, 0]]": "tracegraph.numpy.asarray(HELD.table)[[i, 0]]",
    "HELD.table[0][i]": "tracegraph.numpy.asarray(HELD.table[0])[i]",
    "HELD.by_name['a'][i]": "tracegraph.numpy.asarray(HELD.by_name['a'])[i]",
    "T.reshape(2, 2)[i]": "tracegraph.numpy.asarray(T.reshape(2, 2))[i]",
    "LIST[i]": "tracegraph.numpy.asarray(LIST)[i]",
    "[1, 2, 3][i]": "tracegraph.numpy.asarray([1, 2, 3])[i]",
    "T.take(i)": "tracegraph.numpy.asarray(T).take(i)",
    "T.item(i)": "tracegraph.numpy.asarray(T)[i]",
    "np.sort(T).searchsorted(s)": "tracegraph.numpy.asarray(np.sort(T)).searchsorted(s)",
    "np.take(T, i)": "tracegraph.numpy.take",
    "T[i:i + 2]": "tracegraph.dynamic_slice(tracegraph.numpy.asarray(T), (i,), (size,))",
    "T[i:]": "tracegraph.numpy.asarray(T)[i + numpy.arange(size)]",
    "T[:i]": "numpy.where(numpy.arange(n) < i, tracegraph.numpy.asarray(T), 0)",
    "x[i:i + 2]": "tracegraph.dynamic_slice(x, (start,), (size,))",
    # what asks for the truth of a value, but is no branch
    "max(s, 2.0)": "numpy.maximum(s, 2.0)",
    "min(s, 2.0, x[1])": "numpy.minimum(numpy.minimum(s, 2.0), x[1])",
    "max(x)": "numpy.max(x)",
    "max([s, x[0]])": "numpy.max(numpy.stack([s, x[0]]))",
    "sorted(x)": "numpy.sort(x)",
    "any(x > 1)": "numpy.any(x > 1)",
    "all(x > 0)": "numpy.all(x > 0)",
    "s in LIST": "tracegraph.numpy.isin(s, LIST)",
    "s not in (1.0, 2.0)": "~tracegraph.numpy.isin(s, (1.0, 2.0))",
    "s in T": "tracegraph.numpy.isin(s, T)",
    "1.0 in x": "tracegraph.numpy.isin(1.0, x)",
    "0 < s < 2": "(0 < s) & (s < 2)",
    "0 < s <= x[0] < 9": "(0 < s) & (s <= x[0]) & (x[0] < 9)",
    "s > 0 and s < 2": "numpy.logical_and(s > 0, s < 2)",
    "s > 9 or s < 2 or s > 5": "numpy.logical_or(numpy.logical_or(s > 9, s < 2), s > 5)",
    "not s": "numpy.logical_not(s)",
    "LIST.index(s)": "numpy.argmax(tracegraph.numpy.asarray(LIST) == s)",
    "LIST.count(s)": "numpy.count_nonzero(tracegraph.numpy.asarray(LIST) == s)",
    # NumPy's objects and functions that see no traced value
    "np.r_[x, 1.0]": "tracegraph.numpy.r_[x, 1.0]",
    "np.r_[0.0, s, 1.0]": "tracegraph.numpy.r_[0.0, s, 1.0]",
    "np.c_[x, x]": "tracegraph.numpy.c_[x, x]",
    "np.full_like(T, s)": "tracegraph.numpy.full_like",
    "np.nan_to_num(T, nan=s)": "tracegraph.numpy.nan_to_num",
    "np.vectorize(abs)(x)": "tracegraph.numpy.vectorize(abs)(x)",
    "np.frompyfunc(abs, 1, 1)(x)": "tracegraph.numpy.vectorize",
    "np.lib.stride_tricks.as_strided(x, (2, 2), (8, 8))": "sliding_window_view",
    "np.lexsort([x, x])": "tracegraph.numpy.lexsort",
}
RUNNABLE = [t for t, a in ADVISED.items() if not re.search(r"size|\bn\b|start|[a-z_]$", a)]


@pytest.fixture
def written(tmp_path: Any) -> Any:
    """Makes a function of an expression, in a file as users have them."""

    def make(text: str) -> Any:
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        file = folder / "written.py"
        file.write_text(f"def expression(x, s, i):\n    return {text}\n")
        names = dict(NAMES)
        exec(compile(file.read_text(), str(file), "exec"), names)
        return names["expression"]

    return make


@pytest.mark.parametrize("text", ADVISED)
def test_the_error_has_the_users_expression_and_what_to_write(text: str, written: Any) -> None:
    refused = (errors.TracerMisuseError, errors.UnsupportedByTracerError)
    with pytest.raises(refused) as caught:
        tracegraph.jit(written(text), device="host")(X, 1.0, 1)
    assert ADVISED[text] in str(caught.value)
    assert "written.py:2" in str(caught.value)


@pytest.mark.parametrize("text", RUNNABLE)
def test_what_it_says_gives_numpys_value(text: str, written: Any) -> None:
    expected = written(text)(X, 1.0, 1)
    found = tracegraph.jit(written(ADVISED[text]), device="host")(X, 1.0, 1)
    if " in " in text and "not in" not in text:
        found = np.any(np.asarray(found))
    np.testing.assert_array_equal(np.asarray(found), expected)


def test_functions_in_a_list_are_chosen_by_switch(written: Any) -> None:
    NAMES["CALLS"] = [np.sin, np.cos]
    with pytest.raises(
        errors.TracerIndexError, match=r"write tracegraph\.switch\(i, CALLS, \.\.\."
    ):
        tracegraph.jit(written("CALLS[i](x)"), device="host")(X, 1.0, 1)
    with pytest.raises(errors.TracerIndexError, match=r"'abc'\[i\] needs .* make it static"):
        tracegraph.jit(written("'abc'[i]"), device="host")(X, 1.0, 1)


def test_an_array_that_is_read_and_written_to_is_made_here(tmp_path: Any) -> None:
    def counts(i: Any) -> Any:
        table = np.zeros(3)
        table[i] += 1
        return table

    with pytest.raises(errors.TracerArrayError, match=r"table = tracegraph\.numpy\.zeros\(3\)"):
        tracegraph.jit(counts, device="host")(1)


def branch(x: Any) -> Any:
    if x < 1:
        return x
    elif x:  # noqa: RET505
        return -x
    return 0


def loop(x: Any) -> Any:
    while not x > 400 and x > 1:
        x = x / 2
    return x


def claim(x: Any) -> Any:
    assert (x > 0).all()
    return x


def choice(x: Any) -> Any:
    ok = x > 1
    return x if ok else -x


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (branch, r"`if x < 1` needs .* numpy\.where\(x < 1, a, b\).*tracegraph\.cond\(x < 1, f"),
        (loop, r"`while x > 400` needs .* use tracegraph\.while_loop"),
        (claim, r"`assert \(x > 0\)\.all\(\)` needs .* return the condition"),
        (choice, r"`if ok` needs .* numpy\.where\(ok, a, b\)"),
    ],
)
def test_statements_that_ask_for_a_truth_are_named(function: Any, said: str) -> None:
    with pytest.raises(errors.TracerBoolError, match=said):
        tracegraph.jit(function, device="host")(2.0)


def test_a_truth_without_a_statement_has_general_advice() -> None:
    with pytest.raises(errors.TracerBoolError, match=r"tracegraph\.cond for a branch"):
        tracegraph.jit(lambda x: bool(x), device="host")(2.0)
