"""Functions whose files are kept for ever: between them they have each kind of what a file holds.

``python -m tests.programs.exported VERSION`` writes the files of a release, with the results that
they gave, to tests/golden/export/VERSION.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

import tracegraph

FOLDER = Path(__file__).parents[1] / "golden" / "export"


class Line(NamedTuple):
    slope: Any
    offset: Any


@tracegraph.register_dataclass(name="tests.State")
@dataclasses.dataclass
class State:
    x: Any
    v: Any
    label: str = dataclasses.field(default="a", metadata={"static": True})


TABLE = np.arange(12.0).reshape(3, 4) / 7
HALVES = np.array([0.5, -1.25, 3], ml_dtypes.bfloat16)


def trees(line: Line, given: dict[str, Any]) -> Any:
    values = [line.slope * x + line.offset for x in given["xs"]]
    return Line(values, None), {"sum": sum(values), 3: ()}


def loops(x: Any, n: Any) -> Any:
    def step(state: Any) -> Any:
        i, y = state
        return i + 1, np.where(y > 1, y / 2, y * 3)

    total = tracegraph.while_loop(lambda state: state[0] < n, step, (0, x))[1]
    carry, ys = tracegraph.scan(lambda c, t: (c + t, c * t), 0.0, total)
    return tracegraph.cond(carry > 2, lambda a: a[::-1], lambda a: a * 2, ys)


def selections(x: Any) -> Any:
    y = (x[1:7:2, None] * 1j).at[0].add(2j) * np.exp(0.5)
    return y, np.sort(x)[..., -3:], x.astype(np.int8), np.argmax(x), np.fft.rfft(x)


def constants(x: Any) -> Any:
    return x @ TABLE, HALVES * 2, np.linalg.solve(TABLE[:3, :3] + np.eye(3) * x[:3], x[:3])


def states(state: State) -> State:
    return dataclasses.replace(state, x=state.x + state.v * 0.1)


def effects(x: Any) -> Any:
    tracegraph.debug.print("x = {}, {name}", x, name=x.sum())
    y = tracegraph.while_loop(lambda y: y[0] < 9, lambda y: y + 3, x, max_steps=50)
    return tracegraph.fori_loop(0, 3, lambda i, y: y + i, y, progress="steps")


@tracegraph.custom_jvp
def absolute(x: Any) -> Any:
    return np.sqrt(x * x)


@absolute.defjvp
def absolute_jvp(primals: Any, tangents: Any) -> Any:
    return absolute(primals[0]), np.sign(primals[0]) * tangents[0]


def rules(x: Any) -> Any:
    return absolute(x) * 2


@tracegraph.kernel(
    source="""
extern "C" __global__ void scaled(const double* x, double factor, int n, double* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = factor * x[i];
}""",
    out=lambda x, factor, n: x,
    grid=lambda x, factor, n: -(-n // 128),
    block=128,
    scalars={"factor": "float64", "n": "int32"},
    batching="sequential",
    derivative=lambda primals, tangents: tangents[0] * primals[1],
)
def scaled(x: Any, factor: Any, n: Any) -> Any:
    return factor * x


sigmoid = tracegraph.elementwise(
    lambda x: 1 / (1 + np.exp(-x)),
    cuda="1 / (1 + exp(-{0}))",
    derivative=lambda x: sigmoid(x) * (1 - sigmoid(x)),
)

strongest = tracegraph.reduction(
    lambda x, y: np.where(np.abs(x) < np.abs(y), y, x),
    cuda={"if": "abs({0}) < abs({1}) ? {1} : {0}"},
    identity=0,
    derivative=lambda primals, tangents, axis: tangents[0].sum(axis=axis) * TABLE[0, 1],
)


def own(x: Any) -> Any:
    return scaled(sigmoid(x), 2.0, x.size) * strongest(x) + strongest.accumulate(x)


X = np.linspace(-1, 2, 8)

CASES: Mapping[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "trees": (trees, (Line(2.0, np.float32(1)), {"xs": [X, X.astype("f4")]})),
    "loops": (loops, (X, 5)),
    "selections": (selections, (X,)),
    "constants": (constants, (X[:3],)),
    "states": (states, (State(X, X[::-1].copy(), "b"),)),
    "effects": (effects, (X,)),
    "rules": (rules, (X,)),
    "own": (own, (X,)),
}


def exported(name: str) -> tracegraph.Exported:
    function, arguments = CASES[name]
    return tracegraph.export(function, *arguments, order=1)


def leaves(result: Any) -> list[np.ndarray[Any, Any]]:
    return [np.asarray(leaf) for leaf in tracegraph.tree.leaves(result)]


def write(version: str) -> None:
    folder = FOLDER / version
    folder.mkdir(parents=True)
    results = {}
    for name, (_, arguments) in CASES.items():
        found = exported(name)
        found.save(folder / f"{name}.tg")
        for number, leaf in enumerate(leaves(found(*arguments))):
            results[f"{name}.{number}"] = np.asarray(leaf, np.complex128)
    np.savez_compressed(folder / "results.npz", **results)


if __name__ == "__main__":
    write(*sys.argv[1:])
