"""Loop interchange on the host: the order of the axes of a nest."""

from __future__ import annotations

import numpy as np
import pytest

import tracegraph
from lowering.host.source.python_source import PythonSource

PICKED = np.random.default_rng(0).permutation(240).reshape(6, 40)


def ones(*shape):
    return np.ones(shape, np.float32)


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (lambda x, y: np.mean(x, axis=0, keepdims=True) * y, (ones(6, 40), ones(6, 40))),
        (lambda x, y: (np.sin(x).T + y.T).T, (ones(6, 40), ones(6, 1))),
        (lambda x: np.cumsum(x.T, axis=1).T, (ones(6, 40),)),
        (lambda x, y: y - np.mean(np.sin(x).ravel()[PICKED], axis=0), (ones(6, 40), ones(6, 40))),
    ],
)
def test_arguments_and_results_are_taken_as_they_are(function, arguments, monkeypatch):
    texts = []
    write = PythonSource.text
    monkeypatch.setattr(
        PythonSource, "text", lambda *given: texts.append(write(*given)) or texts[-1]
    )
    found = tracegraph.jit(function, device="host")(*arguments)
    np.testing.assert_allclose(np.asarray(found), function(*arguments), rtol=1e-6)
    assert not any(view in texts[0] for view in (".T", ".transpose", ".reshape", "ndarray("))


def test_positions_in_a_row_are_counted_along_it():
    x = np.random.default_rng(0).random((7, 9)).astype(np.float32)
    found = tracegraph.jit(lambda x: (np.argmax(x, axis=0), np.argmin(x.T)), device="host")(x)
    np.testing.assert_array_equal(found[0], np.argmax(x, axis=0))
    assert int(found[1]) == np.argmin(x.T)
