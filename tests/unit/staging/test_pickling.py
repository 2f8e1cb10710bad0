"""Jitted functions are copied and pickled as functions are."""

from __future__ import annotations

import copy
import dataclasses
import functools
import pickle
from typing import Any

import numpy as np
import pytest

import tracegraph


@tracegraph.jit(device="host")
def doubled(x: Any) -> Any:
    return 2 * x


@tracegraph.jit(device="host", static_argnames="power")
def raised(x: Any, power: int) -> Any:
    return x**power


def plain(x: Any, n: int) -> Any:
    return x + n


added = tracegraph.jit(plain, static_argnums=1, device="host")
partly = tracegraph.jit(functools.partial(plain, n=2), device="host")


@dataclasses.dataclass(frozen=True)
class Scaler:
    factor: float

    @functools.partial(tracegraph.jit, static_argnums=0, device="host")
    def scaled(self, x: Any) -> Any:
        return self.factor * x


X = np.arange(3.0)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("function", [doubled, raised, Scaler.scaled], ids=repr)
def test_a_decorated_function_is_pickled_by_its_path(function: Any, protocol: int) -> None:
    assert pickle.loads(pickle.dumps(function, protocol)) is function


def test_one_under_another_name_is_made_anew() -> None:
    other = pickle.loads(pickle.dumps(added))
    assert other is not added
    np.testing.assert_array_equal(other(X, 5), X + 5)
    assert other.stats()["builds"] == 1
    assert "plain" in repr(other)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(partly))(X), X + 2)


def test_calls_before_change_nothing() -> None:
    np.testing.assert_array_equal(raised(X, power=2), X**2)
    found = pickle.loads(pickle.dumps({"f": raised}))["f"]
    np.testing.assert_array_equal(found(X, power=3), X**3)


def test_methods_take_their_instance_along() -> None:
    bound = pickle.loads(pickle.dumps(Scaler(3.0).scaled))
    np.testing.assert_array_equal(bound(X), 3 * X)
    np.testing.assert_array_equal(copy.deepcopy(Scaler(4.0).scaled)(X), 4 * X)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
@pytest.mark.parametrize(
    "function", [doubled, added, tracegraph.jit(lambda x: x + 1, device="host")]
)
def test_a_copy_is_the_function_itself(function: Any, copied: Any) -> None:
    assert copied(function) is function
    assert copied([function])[0] is function


def test_a_local_function_cannot_be_pickled_and_says_so() -> None:
    local = tracegraph.jit(lambda x: x, device="host")
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        pickle.dumps(local)
    np.testing.assert_array_equal(local(X), X)
