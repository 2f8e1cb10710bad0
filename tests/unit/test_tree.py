from __future__ import annotations

import dataclasses
from functools import partial
from typing import Any

import numpy as np
import pytest

import tracegraph
from tracegraph import errors, tree


@tree.register_dataclass
@dataclasses.dataclass(frozen=True)
class State:
    position: np.ndarray
    velocity: np.ndarray
    name: str = dataclasses.field(default="a", metadata={"static": True})

    def __post_init__(self) -> None:
        if not isinstance(self.position, np.ndarray):
            raise ValueError("made by hand only of arrays")


def test_leaves_stand_in_order_and_none_has_none() -> None:
    leaves, structure = tree.flatten({"b": (2, None), "a": [1]})
    assert leaves == [1, 2]
    assert tree.unflatten(structure, [10, 20]) == {"a": [10], "b": (20, None)}


def test_map_takes_several_trees() -> None:
    assert tree.map(lambda a, b: a - b, (5, [6]), (1, [2])) == (4, [4])


def test_map_of_different_structures_is_an_error() -> None:
    with pytest.raises(ValueError, match="tuple"):
        tree.map(lambda a, b: a, (1, 2), (1, 2, 3))


def test_dataclass_fields_are_children_and_static_ones_are_not() -> None:
    state = State(np.zeros(2), np.ones(2), name="b")
    leaves, structure = tree.flatten(state)
    assert [leaf.tolist() for leaf in leaves] == [[0, 0], [1, 1]]
    rebuilt = tree.unflatten(structure, ["p", "v"])  # __post_init__ would refuse these
    assert (rebuilt.position, rebuilt.velocity, rebuilt.name) == ("p", "v", "b")


def test_structures_of_other_static_values_differ() -> None:
    one, other = State(np.zeros(1), np.zeros(1)), State(np.zeros(1), np.zeros(1), name="b")
    assert tree.structure(one) != tree.structure(other)
    assert tree.structure(one) == tree.structure(State(np.ones(3), np.ones(3)))


def test_paths_are_python_expressions() -> None:
    value = {"s": State(np.zeros(1), np.zeros(1)), "v": [0, (1,)]}
    assert tree.paths(tree.structure(value), "x") == [
        "x['s'].position",
        "x['s'].velocity",
        "x['v'][0]",
        "x['v'][1][0]",
    ]


def test_unhashable_static_field_is_named() -> None:
    with pytest.raises(errors.UnhashableStaticError, match=r"State\.name is of type list"):
        tree.flatten(State(np.zeros(1), np.zeros(1), name=["b"]))  # type: ignore[arg-type]


def test_only_dataclasses_are_registered_as_such() -> None:
    with pytest.raises(TypeError, match="takes a dataclass"):
        tree.register_dataclass(dict)


def test_registered_class() -> None:
    class Pair:
        def __init__(self, a: object, b: object) -> None:
            self.a, self.b = a, b

    tree.register_class(Pair, lambda p: ((p.a, p.b), None), lambda _, children: Pair(*children))
    doubled = tree.map(lambda x: 2 * x, Pair(1, [2]))
    assert (doubled.a, doubled.b) == (2, [4])
    with pytest.raises(ValueError, match="already"):
        tree.register_class(Pair, lambda p: ((p.a, p.b), None), lambda _, c: Pair(*c))


def test_trees_that_do_not_end_are_named() -> None:
    endless: list[Any] = [1.0]
    endless.append({"a": endless})
    deep: Any = 1.0
    for _ in range(3000):
        deep = [deep]
    for flat in (tree.flatten, tree.leaves, tree.structure, partial(tree.map, str)):
        with pytest.raises(errors.EndlessTreeError, match=r"pytree at \[1\]\['a'\] holds itself"):
            flat(endless)
        with pytest.raises(RecursionError, match=r"pytree at \[0\]\[0\].* is nested too deeply"):
            flat(deep)
    first = tracegraph.jit(lambda x, y: x, device="host")
    with pytest.raises(ValueError, match=r"argument y\[1\]\['a'\] holds itself"):
        first(1.0, endless)
    with pytest.raises(ValueError, match=r"argument y\[0\]\[0\].* is nested too deeply"):
        first(1.0, y=deep)


def test_what_is_no_structure_is_named() -> None:
    with pytest.raises(TypeError, match=r"tree\.unflatten takes a structure, .* got 1\.0"):
        tree.unflatten(1.0, [1])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"tree\.paths takes a structure, .* builtins\.list"):
        tree.paths([1.0], "x")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"builtins\.dict write tracegraph\.asarray"):
        tracegraph.Array({})  # type: ignore[arg-type]
