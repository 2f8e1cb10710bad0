"""Static values that are equal but not alike have programs of their own, at any depth."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import tracegraph
from tracegraph import jit
from tracegraph.tree import kind_of

X = np.array([3], np.int32)


@dataclasses.dataclass(frozen=True)
class Options:
    scale: Any


def _innermost(static: Any) -> Any:
    while isinstance(static, (tuple, frozenset, Options)):
        static = static.scale if isinstance(static, Options) else next(iter(static))
    return static


@pytest.mark.parametrize(
    "wrap",
    [
        lambda s: s,
        lambda s: (s,),
        lambda s: ((s, 2),),
        lambda s: frozenset([s]),
        Options,
        lambda s: (Options((s,)),),
    ],
)
def test_types_and_signs_of_zeros_are_part_of_the_key(wrap: Any) -> None:
    jitted = jit(lambda x, s: np.copysign(x * _innermost(s), _innermost(s)), static_argnums=1)
    plain = jitted.__wrapped__
    for value in (1, 1.0, True, np.float32(1), 0, 0.0, -0.0, np.float32(0.0), np.float32(-0.0)):
        got, wanted = np.asarray(jitted(X, wrap(value))), plain(X, wrap(value))
        np.testing.assert_array_equal(got, wanted, strict=True)
        np.testing.assert_array_equal(np.signbit(got), np.signbit(wanted))
    builds = jitted.stats()["builds"]
    jitted(X, wrap(1.0))
    assert jitted.stats()["builds"] == builds


def test_static_fields_are_keyed_by_type() -> None:
    @tracegraph.register_dataclass
    @dataclasses.dataclass
    class Scaled:
        x: Any
        by: Any = dataclasses.field(default=1, metadata={"static": True})

    jitted = jit(lambda s: s.x * s.by[0])
    for by in (1, 1.0, True, -0.0, 0.0):
        got, wanted = np.asarray(jitted(Scaled(X, (by,)))), X * by
        np.testing.assert_array_equal(got, wanted, strict=True)
        np.testing.assert_array_equal(np.signbit(got), np.signbit(wanted))


def test_parts_of_complex_zeros_differ() -> None:
    assert kind_of(complex(1, 0.0)) != kind_of(complex(1, -0.0))
