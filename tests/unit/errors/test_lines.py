"""Errors of shapes, axes and indices carry the user's line, as those of this package do."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tracegraph

X = np.arange(12.0).reshape(3, 4)

CASES: list[tuple[Callable[[Any], Any], type[Exception]]] = [
    (lambda x: x @ x, ValueError),
    (lambda x: np.matmul(x, x), ValueError),
    (lambda x: x + np.ones(7), ValueError),
    (lambda x: np.add(x, np.ones(7)), ValueError),
    (lambda x: np.where(x > 0, x, np.ones(7)), ValueError),
    (lambda x: np.concatenate([x, x[0]]), ValueError),
    (lambda x: np.einsum("ij,jk", x, x), ValueError),
    (lambda x: x.reshape(5), ValueError),
    (lambda x: x.at[0].set(np.ones(7)), ValueError),
    (lambda x: x[10], IndexError),
    (lambda x: x[0, 10], IndexError),
    (lambda x: x[0, 0, 0], IndexError),
    (lambda x: x[1.5], IndexError),
    (lambda x: x.sum(axis=9), np.exceptions.AxisError),
    (lambda x: np.expand_dims(x, 9), np.exceptions.AxisError),
    (lambda x: x.sum(foo=1), TypeError),
    (lambda x: x.reshape(12, order="K"), ValueError),
    (lambda x: x.ravel("X"), ValueError),
    (lambda x: x.T.reshape(12, copy=False), ValueError),
    (lambda x: x.astype(np.int32, casting="safe"), TypeError),
    (lambda x: x.astype(np.int32, order="X"), ValueError),
    (lambda x: x.astype(np.int32, order=1), TypeError),
    (lambda x: x.ravel(1), TypeError),
    (lambda x: pow(x, 2, 5), TypeError),
    (lambda x: tracegraph.cond(x[0, 0] > 0, lambda y: y.reshape(5), lambda y: y, x), ValueError),
    (lambda x: tracegraph.map(lambda y: y.reshape(5), x), ValueError),
]


@pytest.mark.parametrize(("function", "kind"), CASES)
def test_the_line_is_named_once(function: Callable[[Any], Any], kind: type[Exception]) -> None:
    with pytest.raises(kind) as caught:
        tracegraph.jit(function, device="host")(X)
    text = "\n".join((str(caught.value), *getattr(caught.value, "__notes__", ())))
    line = function.__code__.co_firstlineno
    assert re.findall(r"\n  at (.*), in <lambda>", text) == [f"test_lines.py:{line}"]


def test_errors_of_the_user_and_of_eager_calls_stay_as_they_are() -> None:
    def fails(x: Any) -> Any:
        raise ValueError("mine")

    with pytest.raises(ValueError, match=r"^mine$"):
        tracegraph.jit(fails, device="host")(X)
    with pytest.raises(ValueError, match=r"equal or 1$|broadcast") as caught:
        tracegraph.asarray(X) + np.ones(7)
    assert "test_lines" not in str(caught.value)


def test_keywords_of_ndarray() -> None:
    def f(x: Any) -> Any:
        return (
            x.flatten("C"), x.T.flatten(order="C"), x.reshape(4, 3, order="C"),
            x.reshape((2, 6), copy=True), x.astype(np.float32, casting="same_kind"),
            x.astype(np.int32, "K", "unsafe", True, True), x.astype(np.float64, casting="no"),
            pow(x, 2), pow(x, 2, None),
        )  # fmt: skip

    for got, wanted in zip(tracegraph.jit(f, device="host")(X), f(X), strict=True):
        assert got.dtype == wanted.dtype
        np.testing.assert_array_equal(got, wanted)


def test_a_cell_of_ipython_has_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    code = "import numpy as np\n\n\ndef f(x):\n    return np.sin(x) + x[5]\n"
    space: dict[str, Any] = {}
    exec(compile(code, "/tmp/ipykernel_1/4024999484.py", "exec"), space)
    f = tracegraph.jit(space["f"], device="host")
    with pytest.raises(IndexError, match=r"\n  at 4024999484\.py:5, in f"):
        f(np.ones(3))
    cells = {"/tmp/ipykernel_1/4024999484.py": ("Cell", "In[20]")}
    shell = SimpleNamespace(compile=SimpleNamespace(format_code_name=cells.get))
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    with pytest.raises(IndexError, match=r"\n  at In\[20\]:5, in f"):
        f(np.ones(3))
    assert "# In[20]:5" in str(f.trace(np.ones(6)))
    assert repr(tracegraph.jit(space["f"])) == "<jitted f (In[20]:4)>"
    with pytest.raises(IndexError, match=r"\n  at test_lines\.py:\d+"):
        tracegraph.jit(lambda x: x[5], device="host")(np.ones(3))
