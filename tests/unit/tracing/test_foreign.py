"""Arrays of other libraries that a traced function closes over are constants."""

import numpy as np
import pytest

import tracegraph
from tracegraph import fori_loop


class Foreign:
    """An array that speaks DLPack alone, and refuses to become NumPy's, as CuPy's do."""

    def __init__(self, data):
        self.data = data
        self.dtype, self.shape = f"foreign.{data.dtype}", data.shape

    def __dlpack__(self, **options):
        return self.data.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.data.__dlpack_device__()

    def __array__(self, *args, **options):
        raise TypeError("no implicit conversion")


TABLE = np.arange(4.0)

USES = [
    lambda x, t: x + t,
    lambda x, t: np.subtract(t, x),
    lambda x, t: np.where(x > 0, x, t),
    lambda x, t: np.concatenate([x, t]),
    lambda x, t: x @ t,
    lambda x, t: tracegraph.numpy.asarray(t) * x,
    lambda x, t: fori_loop(0, 3, lambda i, c: c * t, x),
]


@pytest.mark.parametrize("use", USES)
def test_foreign_arrays_are_constants_as_those_of_numpy(use):
    x = np.full(4, 2.0)
    foreign = Foreign(TABLE.copy())
    jitted = tracegraph.jit(lambda x: use(x, foreign), device="host")
    expected = np.asarray(tracegraph.jit(lambda x: use(x, TABLE), device="host")(x))
    np.testing.assert_array_equal(np.asarray(jitted(x)), expected)
    foreign.data[:] = np.nan
    np.testing.assert_array_equal(np.asarray(jitted(x)), expected)
    assert jitted.stats()["builds"] == 1


def test_a_foreign_array_is_one_constant_however_often_it_is_used():
    foreign = Foreign(TABLE)

    def f(x):
        return fori_loop(0, 3, lambda i, c: c * foreign + np.add(foreign, c), x) + foreign

    plan = tracegraph.jit(f, device="host").lower(TABLE).plan
    assert len(plan.constants) == 1


def test_a_foreign_array_of_a_dtype_that_arrays_cannot_have_is_refused():
    foreign = Foreign(TABLE)
    foreign.dtype = "foreign.quantized8"
    foreign.__dlpack_device__ = lambda: (2, 0)
    with pytest.raises(TypeError, match=r"quantized8 is not supported; use one of bool, int8"):
        tracegraph.jit(lambda x: x + foreign, device="host")(TABLE)


def test_a_foreign_array_that_refuses_to_give_its_elements_is_named():
    class Guarded(Foreign):
        def __dlpack__(self, **options):
            raise BufferError("it requires a gradient")

    guarded = Guarded(TABLE)
    facts = r"captures is of type .*Guarded.*BufferError: it requires a gradient.*detach it"
    with pytest.raises(TypeError, match=facts):
        tracegraph.jit(lambda x: x + guarded, device="host")(TABLE)
    with pytest.raises(TypeError, match=facts):
        tracegraph.jit(lambda x: fori_loop(0, 2, lambda i, c: c * guarded, x), device="host")(TABLE)
    np.testing.assert_array_equal(tracegraph.jit(np.add, device="host")(TABLE, 1), TABLE + 1)
