"""Pytrees: nested tuples, lists, dicts, None and registered classes, with arrays as leaves.

    Tree := leaf | None | (Tree, …) | [Tree, …] | {key: Tree} | registered class of Trees

optree does the work.

    structures    leaves and structures of trees, map; classes as nodes
    walks         leaves with their paths; folds over leaves; the levels of a tree exchanged
"""

from typing import TYPE_CHECKING

from tracegraph.errors.names_elsewhere import names_of as _names_of
from tracegraph.tree.structures import *
from tracegraph.tree.walks import *

if not TYPE_CHECKING:  # a type checker would find any name in a module that has this
    __getattr__ = _names_of(__name__)
