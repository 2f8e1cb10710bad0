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

    tree.register(Pair, lambda p: ((p.a, p.b), None), lambda _, children: Pair(*children))
    doubled = tree.map(lambda x: 2 * x, Pair(1, [2]))
    assert (doubled.a, doubled.b) == (2, [4])
    with pytest.raises(ValueError, match="already"):
        tree.register(Pair, lambda p: ((p.a, p.b), None), lambda _, c: Pair(*c))


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


def test_leaves_come_with_their_paths() -> None:
    value = {"s": State(np.zeros(1), np.ones(1)), "v": [3, (4, None)]}
    pairs, structure = tree.flatten_with_path(value)
    assert [path for path, _ in pairs] == [
        ("s", "position"),
        ("s", "velocity"),
        ("v", 0),
        ("v", 1, 0),
    ]
    assert [leaf is other for (_, leaf), other in zip(pairs, tree.leaves(value), strict=True)]
    assert structure == tree.structure(value)
    assert tree.leaves_with_path((1, 2)) == [((0,), 1), ((1,), 2)]
    assert tree.leaves_with_path(5) == [((), 5)]


def test_map_with_path_takes_several_trees() -> None:
    found = tree.map_with_path(lambda path, a, b: (path, a + b), {"a": [1, 2]}, {"a": [10, 20]})
    assert found == {"a": [(("a", 0), 11), (("a", 1), 22)]}
    with pytest.raises(ValueError, match="arity"):
        tree.map_with_path(lambda path, a, b: a, (1, 2), (1, 2, 3))


def test_is_leaf_ends_the_walk() -> None:
    def is_pair(x: Any) -> bool:
        return isinstance(x, tuple)

    value = [(1, 2), [(3, 4)]]
    assert tree.leaves(value, is_leaf=is_pair) == [(1, 2), (3, 4)]
    assert tree.map(sum, value, is_leaf=is_pair) == [3, [7]]
    assert tree.map_with_path(lambda path, x: (*path, sum(x)), value, is_leaf=is_pair) == [
        (0, 3),
        [(1, 0, 7)],
    ]
    assert tree.structure(value, is_leaf=is_pair) == tree.structure([0, [0]])
    assert tree.reduce(lambda n, x: n + len(x), value, 0, is_leaf=is_pair) == 4
    assert tree.all([(0, 0)], is_leaf=is_pair)
    assert tree.broadcast([(1, 2), 3], [[0, 0], 0], is_leaf=is_pair) == [[(1, 2), (1, 2)], 3]


def test_reduce_folds_leaves_in_order() -> None:
    assert tree.reduce(lambda a, b: a + b, {"b": "y", "a": ("x",), "c": "z"}) == "xyz"
    assert tree.reduce(lambda a, b: a + b, [], "first") == "first"
    assert tree.reduce(lambda a, b: a + b, [None], None) is None
    with pytest.raises(TypeError, match=r"without leaves.*pass initializer="):
        tree.reduce(lambda a, b: a + b, [None])


def test_folds_of_traced_leaves_are_traced() -> None:
    @tracegraph.jit
    def total(x: Any) -> Any:
        return tree.reduce(lambda a, b: a + b, tree.map(np.sum, x))

    assert float(total({"a": np.ones(3), "b": (np.ones(2), 1.5)})) == 6.5
    with pytest.raises(errors.TracerBoolError):
        tracegraph.jit(lambda x: tree.all(x))((True, False))


def test_all_of_a_tree() -> None:
    assert tree.all({})
    assert tree.all((True, [np.bool_(True), 1]))
    assert not tree.all((True, [np.bool_(False)]))


def test_transpose_exchanges_the_levels() -> None:
    value = {"a": (1, [2]), "b": (3, [4])}
    outer, inner = tree.structure({"a": 0, "b": 0}), tree.structure((0, [0]))
    assert tree.transpose(outer, inner, value) == ({"a": 1, "b": 3}, [{"a": 2, "b": 4}])
    assert tree.transpose(outer, None, value) == tree.transpose(outer, inner, value)
    assert tree.transpose(tree.structure(()), tree.structure((0, 0)), ()) == ((), ())
    with pytest.raises(ValueError, match="arity"):
        tree.transpose(outer, tree.structure((0, 0, 0)), value)
    with pytest.raises(TypeError, match=r"takes two structures.*got"):
        tree.transpose({"a": 0}, inner, value)  # type: ignore[arg-type]


@pytest.mark.parametrize("library", ["attrs", "pydantic"])
def test_classes_of_other_libraries_are_registered_by_their_fields(library: str) -> None:
    module = pytest.importorskip(library)
    annotations = {"x": Any, "name": str}
    if library == "attrs":
        static = module.field(metadata={"static": True}, default="a")
        cls = module.frozen(type("Of", (), {"__annotations__": annotations, "name": static}))
    else:
        static = module.Field(json_schema_extra={"static": True}, default="a")
        cls = module.create_model("Of", x=(Any, ...), name=(str, static))
    tracegraph.register_dataclass(cls)

    def step(state: Any) -> Any:
        assert state.name == "b"
        return cls(x=state.x + 1, name="c")

    found = tracegraph.jit(step, device="host")(cls(x=np.ones(2), name="b"))
    assert type(found) is cls
    assert found.name == "c"
    np.testing.assert_array_equal(found.x, [2, 2])
