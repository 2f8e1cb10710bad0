"""`register_array_api`: what SciPy's copies of array-api-compat and array-api-extra learn."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pytest

import tracegraph
from tracegraph import errors
from tracegraph.interop import array_api_libraries, register_array_api

# other versions of SciPy have these elsewhere
compat: Any = pytest.importorskip("scipy._lib.array_api_compat")
extra: Any = pytest.importorskip("scipy._lib.array_api_extra")
scipy_arrays: Any = pytest.importorskip("scipy._lib._array_api")


def test_libraries_know_arrays_while_they_are_registered() -> None:
    x = tracegraph.asarray(np.arange(3.0))

    def update(x: Any) -> Any:
        xp = tracegraph.array_api  # SciPy finds it by itself with SCIPY_ARRAY_API
        return extra.at(x)[x > 1].set(9.0, xp=xp), extra.at(x)[0].add(5.0, xp=xp)

    def in_place(x: Any) -> Any:
        x = x + 0
        extra.at(x)[0].set(9.0, xp=tracegraph.array_api)  # the result is ignored
        return x

    with register_array_api():
        with register_array_api():
            pass  # which ends nothing, as another holds it
        assert not compat.is_writeable_array(x)
        assert compat.is_writeable_array(x + 1)
        for write in (in_place, tracegraph.jit(in_place, device="host")):
            np.testing.assert_array_equal(write(x), [9, 1, 2])
        assert not compat.is_lazy_array(x)
        for found in (update(x), tracegraph.jit(update, device="host")(x)):
            np.testing.assert_array_equal(found[0], [0, 1, 9])
            np.testing.assert_array_equal(found[1], [5, 1, 2])
        assert tracegraph.jit(compat.is_lazy_array, device="host")(x)
        assert scipy_arrays.scipy_namespace_for(tracegraph.array_api).special is tracegraph.special
    assert scipy_arrays.scipy_namespace_for(tracegraph.array_api) is None
    with pytest.raises((ValueError, errors.ImmutableArrayError)):
        update(x)


def test_a_library_without_the_function_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    helpers = import_module("scipy._lib.array_api_compat.common._helpers")
    before = dict(vars(helpers))
    monkeypatch.delattr(helpers, "_is_lazy_cls")
    with pytest.raises(RuntimeError, match=r"_helpers\._is_lazy_cls, which is not there.*SciPy 1"):
        register_array_api()
    assert not array_api_libraries._holders
    assert vars(helpers) == {k: v for k, v in before.items() if k != "_is_lazy_cls"}
