"""Type checkers see the parameters and the result of a jitted function."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]

PROGRAM = """
from typing import assert_type

import numpy as np
from numpy.typing import NDArray

import tracegraph
from tracegraph import jit

Vector = NDArray[np.float64]


@jit
def scale(x: Vector, factor: float = 2.0, *, shift: int = 0) -> Vector:
    return x * factor + shift


@jit(static_argnames="n", device="host")
def power(x: Vector, n: int) -> tuple[Vector, int]:
    return x**n, n


class Model:
    @jit
    def step(self, x: Vector) -> Vector:
        return x

    @jit(static_argnums=0)
    def count(self, x: Vector) -> int:
        return 1


def halved(x: Vector) -> Vector:
    return x / 2


x: Vector = np.ones(3)
assert_type(scale(x), Vector)
assert_type(scale(x, 3.0, shift=1), Vector)
assert_type(scale.launch(x), Vector)
assert_type(power(x, n=2), tuple[Vector, int])
assert_type(jit(halved, donate_argnums=0)(x), Vector)
assert_type(jit(donate_argnums=0)(halved)(x), Vector)
assert_type(Model().step(x), Vector)
assert_type(Model().count(x), int)
assert_type(Model.step(Model(), x), Vector)
assert_type(scale.stats()["traces"], int)
scale.lower(tracegraph.asarray(x), 1.0).compile()



def loss(x: Vector, rate: float = 1.0) -> np.float64:
    return np.float64(np.sum(tracegraph.nn.softplus(x)) * rate)


value, slopes = tracegraph.value_and_grad(loss)(x, rate=2.0)
assert_type(value, np.float64)
assert_type(tracegraph.checkpoint(loss)(x), np.float64)
assert_type(jit(donate_argnames="x")(halved)(x), Vector)
stepped: Vector = tracegraph.tree.map(lambda w, s: w - s, x, tracegraph.grad(loss)(x))
counted: int = tracegraph.fori_loop(0, 3, lambda i, count: count + i, 0)
assert_type(tracegraph.tree.leaves_with_path({"w": x})[0][0], tracegraph.tree.Path)
placed = tracegraph.device_put({"w": x}, "host")
shape: tracegraph.ArrayType = tracegraph.eval_shape(loss, x)

tracegraph.grad(loss)(x, rat=1.0)  # error: call-arg
tracegraph.value_and_grad(loss)("text")  # error: arg-type
tracegraph.checkpoint(loss)()  # error: call-arg
tracegraph.nn.rellu(x)  # error: attr-defined
tracegraph.tree.leafs(x)  # error: attr-defined
tracegraph.lax  # error: attr-defined
scale("text")  # error: arg-type
scale(x, shift=1.5)  # error: arg-type
scale()  # error: call-arg
power(x, m=3)  # error: call-arg
Model().step()  # error: call-arg
Model().step(x, x)  # error: call-arg
jit(static_argnum=1)(halved)  # error: call-overload
"""


def test_signatures_are_kept(tmp_path: Path) -> None:
    api = pytest.importorskip("mypy.api")
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    options = [
        "--config-file",
        str(ROOT / "pyproject.toml"),
        "--no-error-summary",
        "--hide-error-context",
    ]
    text, problems, _ = api.run([*options, str(file)])
    assert not problems
    found = [line for line in text.splitlines() if ": error: " in line]
    got = {int(line.split(":")[1]): line.rpartition("[")[2].rstrip("]") for line in found}
    lines = enumerate(PROGRAM.splitlines(), 1)
    wanted = {n: line.partition("# error: ")[2] for n, line in lines if "# error: " in line}
    assert got == wanted, text
