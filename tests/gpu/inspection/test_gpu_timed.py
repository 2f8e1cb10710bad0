"""debug.timed on a GPU: events measure the sections of the last launch."""

import numpy as np
import pytest

import tracegraph
from tracegraph import debug


def f(x, a):
    with debug.timed("short"):
        y = x + 1
    with debug.timed("long"):
        b = a
        for _ in range(8):
            b = b @ a
        return tracegraph.fori_loop(0, 100, lambda i, z: z + b[0, 0], y)


X, A = np.arange(1000.0), np.full((1024, 1024), 2.0**-10)


@pytest.mark.parametrize("options", [{}, {"scratch": "per_launch"}])
def test_sections_of_the_last_launch(options):
    jitted = tracegraph.jit(f, device="cuda", **options)
    assert jitted.timings() == {}
    for k in range(3):
        result = jitted(X + k, A)
        timings = jitted.timings()
        assert list(timings) == ["short", "long"]
        assert timings["short"] >= 0
        assert timings["long"] > 0
        np.testing.assert_allclose(np.asarray(result), X + k + 1 + 100 * 2.0**-10)


def test_each_stream_has_its_own():
    jitted = tracegraph.jit(f, device="cuda")
    compiled = jitted.lower(X, A).compile()
    compiled(X, A).synchronize()
    with tracegraph.stream(tracegraph.Stream("cuda")):
        assert compiled.timings() == {}
        compiled(X, A)
        assert compiled.timings()["long"] > 0
    assert compiled.timings()["long"] > 0
    compiled.close()
    assert compiled.timings() == {}
