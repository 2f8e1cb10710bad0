"""Trees as leaves and a structure, and classes whose instances are nodes of trees.

Classes are registered in a namespace of their own, so that what other libraries register cannot
change what a leaf is here.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial
from typing import Any, TypeVar, overload
from weakref import WeakKeyDictionary, WeakValueDictionary

import numpy as np
import optree

from tracegraph import errors
from tracegraph.errors.tracebacks import entry_point

__all__ = [
    "NAMESPACE", "IsLeaf", "Structure", "flatten", "kind_of", "leaves", "map", "paths",
    "register", "register_dataclass", "registered_class", "registered_name", "spread_prefix",
    "structure", "unflatten",
]  # fmt: skip

NAMESPACE = "tracegraph"

Structure = optree.PyTreeSpec
IsLeaf = Callable[[Any], bool]
_T = TypeVar("_T")

# optree's annotation asks for a Collection, which nodes need not be.
_register: Callable[..., Any] = optree.register_pytree_node


def flatten(tree: Any, is_leaf: IsLeaf | None = None) -> tuple[list[Any], Structure]:
    """The leaves of a tree, in order, and its structure.

    Args:
        tree: any tree.
        is_leaf: of what it holds true, the whole tree below is one leaf.

    Raises:
        EndlessTreeError: the tree holds itself, or is too deep.

    >>> flatten({"a": 1, "b": (2, None)})[0]
    [1, 2]
    """
    try:
        return optree.tree_flatten(tree, is_leaf=is_leaf, namespace=NAMESPACE)
    except RecursionError:
        raise errors.EndlessTreeError(*_endless(tree)) from None


def unflatten(structure: Structure, leaves: Iterable[Any]) -> Any:
    """The tree of a structure with these leaves.

    Raises:
        TypeError: it is not a structure.
        ValueError: the structure has another number of leaves.

    >>> unflatten(structure((0, [0])), [1, 2])
    (1, [2])
    """
    return optree.tree_unflatten(_checked(structure, "unflatten"), leaves)


def leaves(tree: Any, is_leaf: IsLeaf | None = None) -> list[Any]:
    """The leaves of a tree, in order; `is_leaf` as in `flatten`.

    >>> leaves([1, (2, 3)])
    [1, 2, 3]
    >>> leaves([1, (2, 3)], is_leaf=lambda x: isinstance(x, tuple))
    [1, (2, 3)]
    """
    return flatten(tree, is_leaf)[0]


def structure(tree: Any, is_leaf: IsLeaf | None = None) -> Structure:
    """The structure of a tree: hashable, and equal for trees that differ in leaves only.

    `is_leaf` is that of `flatten`.

    >>> structure((1, 2)) == structure((3, 4))
    True
    """
    return flatten(tree, is_leaf)[1]


def map(  # the tree's own `map`
    function: Callable[..., Any], tree: Any, *others: Any, is_leaf: IsLeaf | None = None
) -> Any:
    """The tree of `function(leaf, *leaves of the others at the same place)`.

    Args:
        function: takes a leaf of each tree.
        tree: the tree whose leaves decide.
        *others: trees of the same structure, or with trees in the place of its leaves.
        is_leaf: as in `flatten`, of `tree`.

    Raises:
        ValueError: the trees differ in structure.

    >>> map(lambda a, b: a + b, (1, {"n": 2}), (10, {"n": 20}))
    (11, {'n': 22})
    """
    try:
        return optree.tree_map(function, tree, *others, is_leaf=is_leaf, namespace=NAMESPACE)
    except RecursionError:
        for each in (tree, *others):
            flatten(each)
        raise


def paths(structure: Structure, name: str) -> list[str]:
    """The Python expression of each leaf of a tree called `name`.

    >>> paths(structure({"v": [0, 0]}), "state")
    ["state['v'][0]", "state['v'][1]"]
    """
    accessors = optree.treespec_accessors(_checked(structure, "paths"))
    return [accessor.codify(name) for accessor in accessors]


def _checked(structure: Any, function: str) -> Structure:
    """A structure itself.

    Raises:
        TypeError: it is not one.
    """
    if not isinstance(structure, Structure):
        raise TypeError(
            f"tree.{function} takes a structure, as tree.structure(x) gives it, and then "
            f"{'the leaves' if function == 'unflatten' else 'a name'}; got "
            f"{errors.value_text(structure)}"
        )
    return structure


def _endless(tree: Any) -> tuple[str, bool]:
    """The expression of a container that holds itself, or is too deep; and whether it does."""
    path, above = "", list[int]()
    rest: list[tuple[Any, str, tuple[int, ...]]] = [(tree, "", ())]
    while rest:
        node, path, around = rest.pop()
        if id(node) in around:
            return path, True
        above = [*around, id(node)]
        if len(above) > _SEARCHED:
            return path[:_SHOWN], False
        if isinstance(node, dict):
            rest += [(child, f"{path}[{key!r}]", tuple(above)) for key, child in node.items()]
        elif isinstance(node, (list, tuple)):
            rest += [(child, f"{path}[{k}]", tuple(above)) for k, child in enumerate(node)]
    return path[:_SHOWN], False


_SEARCHED, _SHOWN = 200, 12
"""How deep a container that holds itself is looked for; characters of the path of one too deep."""


def spread_prefix(prefix: Any, tree: Any) -> list[Any]:
    """For each leaf of a tree, the leaf of a prefix of it that stands there or above.

    None is a leaf of the prefix.

    Raises:
        ValueError: it is not a prefix of the tree.

    >>> spread_prefix((0, None), ({"a": 1, "b": 2}, [3]))
    [0, 0, None]
    """
    above, shape = optree.tree_flatten(prefix, none_is_leaf=True, namespace=NAMESPACE)
    below = shape.flatten_up_to(tree)
    pairs = zip(above, below, strict=True)
    return [leaf for leaf, subtree in pairs for _ in leaves(subtree)]


def register(
    cls: type[_T],
    to_children: Callable[[Any], tuple[Sequence[Any], Hashable]],
    from_children: Callable[[Hashable, Sequence[Any]], Any],
) -> type[_T]:
    """Make instances of a class nodes of trees.

    Args:
        cls: the class. Subclasses are not covered.
        to_children: gives the children and what else defines an instance, hashable.
        from_children: makes an instance of the latter and new children.

    Raises:
        ValueError: the class is registered already.

    >>> class Pair(list): ...
    >>> _ = register(Pair, lambda p: (tuple(p), None), lambda _, children: Pair(children))
    >>> leaves(Pair([1, 2]))
    [1, 2]
    """
    _register(cls, to_children, from_children, namespace=NAMESPACE)
    return cls


_names: WeakKeyDictionary[type, str] = WeakKeyDictionary()
_classes: WeakValueDictionary[str, type] = WeakValueDictionary()
"""Registered dataclasses and their names in files, either way."""


def registered_name(cls: type) -> str | None:
    """The name of a registered dataclass in files; None if the class is none.

    >>> registered_name(dict) is None
    True
    """
    return _names.get(cls)


def registered_class(name: str) -> type | None:
    """The registered dataclass that files call by a name: the last one of that name, or None.

    >>> registered_class("nobody.Registered") is None
    True
    """
    return _classes.get(name)


@overload
def register_dataclass(cls: type[_T], *, name: str | None = None) -> type[_T]: ...
@overload
def register_dataclass(
    cls: None = None, *, name: str | None = None
) -> Callable[[type[_T]], type[_T]]: ...
@entry_point
def register_dataclass(cls: Any = None, *, name: str | None = None) -> Any:
    """Make instances of a dataclass nodes of trees; for use as a decorator.

    It takes a class of attrs or a model of pydantic as well. The fields are the children. A field
    declared with ``field(metadata={"static": True})``, or of pydantic with
    ``Field(json_schema_extra={"static": True})``, is not: it must be hashable, and functions are
    traced again for each of its values. Instances are rebuilt without ``__init__``,
    ``__post_init__``, converters and validators, since the fields may hold traced values.

    Args:
        cls: the dataclass. Without it, `register_dataclass` with a name is a decorator.
        name: what files of saved functions call it; by default, its module and name.

    Raises:
        TypeError: the class has no fields that are known, or `name` is not a string.
        ValueError: the class is registered already.

    >>> @register_dataclass
    ... @dataclasses.dataclass
    ... class State:
    ...     x: float
    ...     name: str = dataclasses.field(default="a", metadata={"static": True})
    >>> leaves(State(1.5))
    [1.5]
    """
    given: Any = name
    if given is not None and not isinstance(given, str):
        got = errors.value_text(given)
        raise TypeError(f"register_dataclass: name must be a string, not {got}")
    if cls is None and name is not None:
        return partial(register_dataclass, name=name)
    children, static = _fields(cls)
    make = getattr(cls, "model_construct", None)  # pydantic's, which validates nothing

    def to_children(instance: Any) -> tuple[tuple[Any, ...], Hashable, tuple[str, ...]]:
        values = tuple(getattr(instance, name) for name in static)
        for name, value in zip(static, values, strict=True):
            _require_hashable(cls, name, value)
        of_instance = (values, kind_of(values)) if values else ((), ())
        return tuple(getattr(instance, name) for name in children), of_instance, children

    def from_children(of_instance: Any, child_values: Any) -> Any:
        values = dict(zip((*static, *children), (*of_instance[0], *child_values), strict=True))
        if make is not None:
            return make(**values)
        instance = object.__new__(cls)
        for name, value in values.items():
            object.__setattr__(instance, name, value)  # a frozen dataclass refuses setattr
        return instance

    _register(
        cls,
        to_children,
        from_children,
        path_entry_type=optree.GetAttrEntry,
        namespace=NAMESPACE,
    )
    _names[cls] = name or f"{cls.__module__}.{cls.__qualname__}"
    _classes[_names[cls]] = cls
    return cls


def _fields(cls: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names of the fields that are children, and of those that are static.

    Raises:
        TypeError: it is no class with fields of dataclasses, attrs or pydantic.
    """
    if isinstance(cls, type) and dataclasses.is_dataclass(cls):
        static = {f.name: f.metadata.get("static") for f in dataclasses.fields(cls)}
    elif isinstance(cls, type) and hasattr(cls, "__attrs_attrs__"):
        static = {f.name: f.metadata.get("static") for f in cls.__attrs_attrs__}
    elif isinstance(cls, type) and hasattr(cls, "model_construct"):
        of_pydantic: Any = cls
        static = {
            name: isinstance(extra := field.json_schema_extra, dict) and extra.get("static")
            for name, field in of_pydantic.model_fields.items()
        }
    else:
        raise TypeError(
            "register_dataclass takes a dataclass, a class of attrs or a model of pydantic, got "
            f"{cls!r}; put @dataclass under the decorator, or write tracegraph.tree.register"
        )
    children = tuple(name for name, is_static in static.items() if not is_static)
    return children, tuple(name for name in static if name not in children)


_SIMPLE = frozenset({int, str, bool, type(None)})


def kind_of(static: Any) -> Any:
    """What distinguishes a static value from others that are equal to it: the types in it, signs of
    zeros.

    >>> kind_of((1, 2.0)) == kind_of((True, 2.0)), kind_of(0.0) == kind_of(-0.0)
    (False, False)
    """
    kind = type(static)
    if kind in _SIMPLE:
        return kind
    if isinstance(static, tuple):
        return kind, tuple([kind_of(x) for x in static])
    if isinstance(static, frozenset):
        return kind, frozenset([(x, kind_of(x)) for x in static])
    if isinstance(static, slice):
        return kind, kind_of((static.start, static.stop, static.step))
    if isinstance(static, (complex, np.complexfloating)):
        return kind, kind_of((static.real, static.imag))
    if isinstance(static, (float, np.floating)):
        return kind, str(static) if static == 0 else ""
    if dataclasses.is_dataclass(static) and not isinstance(static, type):
        return kind, tuple([kind_of(getattr(static, f.name)) for f in dataclasses.fields(static)])
    return kind


def _require_hashable(cls: type, name: str, value: Any) -> None:
    try:
        hash(value)
    except TypeError:
        raise errors.UnhashableStaticError(f"static field {cls.__name__}.{name}", value) from None
