"""Arrays that NumPy makes in a traced function and that are written to: the advised line works."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracegraph
from tracegraph import errors

X = np.array([3.0, 1.0, 2.0])
I = np.array([2, 0, 2])

MADE = [
    "np.zeros(3)",
    "np.zeros(shape=3, dtype=np.float32)",
    "np.empty(x.shape)",
    "np.ones_like(x, shape=3)",
    "np.full(3, 7.5)",
    "np.arange(3.0)",
    "np.array([1.0, 2.0, 3.0])",
    "np.linspace(0, 1, 3)",
    "numpy.zeros((3,))",
]

WRITES = [
    "y[0] = x[1]",
    "y[:] = x",
    "y[1:] = x[:2]",
    "y[i] = 5",
    "y += x",
    "y[1:] *= x[1:]",
    "np.add.at(y, i, 1)",
    "np.add(x, 1, out=y)",
    "np.copyto(y, x, casting='unsafe')",
    "np.putmask(y, x > 1, 9)",
    "np.put(y, i, x)",
    "np.place(y, x > 1, [9])",
    "np.put_along_axis(y, i, x, 0)",
    "y.ravel()[1] = x[0]",
    "y[1:][::-1][0] = x[0]",
    "y.T[...] = x",
    "for k in range(3): y[k] = x[k] * k",
]


def source(made: str, write: str) -> str:
    before = "np.copyto(y, 1)" if "empty" in made else "pass"
    lines = [f"y = {made}", before, write, "return y"]
    body = "\n".join(f"    {line}" for line in lines)
    head = "import numpy\nimport numpy as np\nimport tracegraph.numpy\n"
    return f"{head}\ndef f(x, i):\n{body}\n"


def function_of(text: str, folder: Path, name: str) -> Any:
    path = folder / f"{name}.py"
    path.write_text(text, "utf-8")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.f


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("made", MADE)
def test_the_advised_line_gives_numpys_result(made: str, write: str, tmp_path: Path) -> None:
    text = source(made, write)
    f = function_of(text, tmp_path, "as_written")
    expected = f(X, I)
    if "_like" not in made:  # that of a traced array is ours
        kinds = (errors.TracerMisuseError, errors.UnsupportedByTracerError)
        with pytest.raises(kinds, match=r"at as_written\.py:\d, in f") as caught:
            tracegraph.jit(f, device="host")(X, I)
        advice = re.search(r"write (y = .*) instead of (y = .*) in line 6", str(caught.value))
        assert advice is not None
        assert advice[2] in text
        f = function_of(text.replace(advice[2], advice[1]), tmp_path, "as_advised")
    found = np.asarray(tracegraph.jit(f, device="host")(X, I))
    np.testing.assert_array_equal(found, expected, strict=True)
