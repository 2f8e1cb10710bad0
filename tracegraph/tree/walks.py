"""Leaves of trees with their paths, folds over leaves, and trees of trees exchanged.

The names and the order of arguments are those of `jax.tree`.
"""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable, Hashable
from typing import Any

import optree

from tracegraph import errors
from tracegraph.tree.structures import (
    NAMESPACE,
    IsLeaf,
    Structure,
    flatten,
    leaves,
    structure,
    unflatten,
)

__all__ = [
    "Path", "all", "broadcast", "flatten_with_path", "leaves_with_path", "map_with_path", "reduce",
    "transpose",
]  # fmt: skip

Path = tuple[Hashable, ...]
"""The keys of dicts, positions and names of fields that lead to a leaf."""

_MISSING = object()


def flatten_with_path(
    tree: Any, is_leaf: IsLeaf | None = None
) -> tuple[list[tuple[Path, Any]], Structure]:
    """Pairs of the path and the leaf, in the order of the leaves; and the structure.

    A path is a tuple of keys, positions and names of fields; `paths` has them as Python
    expressions. `is_leaf` is that of `flatten`.

    >>> flatten_with_path({"w": [1, 2]})[0]
    [(('w', 0), 1), (('w', 1), 2)]
    """
    found, shape = flatten(tree, is_leaf)
    return list(zip(optree.treespec_paths(shape), found, strict=True)), shape


def leaves_with_path(tree: Any, is_leaf: IsLeaf | None = None) -> list[tuple[Path, Any]]:
    """Pairs of the path and the leaf, as `flatten_with_path` gives them.

    >>> leaves_with_path((1, {"n": 2}))
    [((0,), 1), ((1, 'n'), 2)]
    """
    return flatten_with_path(tree, is_leaf)[0]


def map_with_path(
    function: Callable[..., Any], tree: Any, *others: Any, is_leaf: IsLeaf | None = None
) -> Any:
    """The tree of `function(path, leaf, *leaves of the others at the same place)`.

    Paths are those of `flatten_with_path`; the other arguments are those of `map`.

    Raises:
        ValueError: the trees differ in structure.

    >>> map_with_path(lambda path, x: x if path[-1] == "bias" else 2 * x, {"bias": 1, "w": 3})
    {'bias': 1, 'w': 6}
    """
    found, shape = flatten_with_path(tree, is_leaf)
    beside = [shape.flatten_up_to(other) for other in others]
    rows = zip(found, *beside, strict=True)
    return unflatten(shape, [function(path, leaf, *rest) for (path, leaf), *rest in rows])


def reduce(
    function: Callable[[Any, Any], Any],
    tree: Any,
    initializer: Any = _MISSING,
    is_leaf: IsLeaf | None = None,
) -> Any:
    """`function(… function(function(initializer, leaf), leaf) …)` over the leaves, in order.

    Args:
        function: takes what was found so far, and a leaf.
        tree: any tree.
        initializer: what the fold begins with; without it, the first leaf.
        is_leaf: as in `flatten`.

    Raises:
        TypeError: the tree has no leaf, and there is no `initializer`.

    >>> reduce(lambda total, x: total + x, {"a": 1, "b": (2, 3)})
    6
    >>> reduce(lambda count, x: count + len(x), ["ab", "c"], 0)
    3
    """
    found = leaves(tree, is_leaf)
    if initializer is not _MISSING:
        return functools.reduce(function, found, initializer)
    if not found:
        raise TypeError(
            "tree.reduce got a tree without leaves, and nothing to begin with; pass initializer="
        )
    return functools.reduce(function, found)


def all(tree: Any, *, is_leaf: IsLeaf | None = None) -> bool:
    """Whether every leaf is true, also of a tree without leaves.

    Raises:
        TracerBoolError: a leaf is a traced value.
        ValueError: a leaf is an array of several elements.

    >>> all({"a": 1, "b": (2, 0)})
    False
    """
    return builtins.all(leaves(tree, is_leaf))


def broadcast(prefix: Any, full: Any, is_leaf: IsLeaf | None = None) -> Any:
    """The tree with the structure of `full` whose leaves are those of `prefix` there or above.

    Args:
        prefix: a tree that ends where `full` does, or above.
        full: any tree.
        is_leaf: as in `flatten`, of `prefix`.

    Raises:
        ValueError: `prefix` is not a prefix of `full`.

    >>> broadcast((0, 1), ({"a": 5, "b": 6}, 7))
    ({'a': 0, 'b': 0}, 1)
    """
    return optree.tree_broadcast_prefix(prefix, full, is_leaf=is_leaf, namespace=NAMESPACE)


def transpose(outer: Structure, inner: Structure | None, tree: Any) -> Any:
    """A tree with structure `outer` of trees with structure `inner`, the other way round.

    Args:
        outer: the structure above.
        inner: the structure below; None to find it.
        tree: a tree of both.

    Raises:
        TypeError: what should be a structure is none.
        ValueError: the tree has another structure.

    >>> transpose(structure({"a": 0, "b": 0}), structure((0, 0)), {"a": (1, 2), "b": (3, 4)})
    ({'a': 1, 'b': 3}, {'a': 2, 'b': 4})
    """
    for given in (outer, inner):
        if not (isinstance(given, Structure) or given is None is inner):
            raise TypeError(
                f"tree.transpose takes two structures, as tree.structure(x) gives them, and then a "
                f"tree; got {errors.value_text(given)}"
            )
    below = outer.flatten_up_to(tree)
    if inner is None:
        inner = structure(below[0]) if below else structure(())
    rows = [inner.flatten_up_to(each) for each in below]
    columns = [[row[k] for row in rows] for k in range(inner.num_leaves)]
    return unflatten(inner, [unflatten(outer, column) for column in columns])
