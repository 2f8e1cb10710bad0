"""Nodes that a driver has added to graphs, and graphs that are complete."""

from __future__ import annotations

import ctypes
from collections.abc import Hashable, Iterator, Mapping
from typing import Any, Protocol

from tracegraph.generated.dataclass import dataclass

__all__ = [
    "CapturedKernelHandle", "GraphMemory", "KernelNodeHandle", "NodeView", "NodesView",
    "SharedWords", "TiedGraph", "Words",
]  # fmt: skip


class Words(Protocol):
    """A fixed number of unsigned 64-bit words."""

    def __getitem__(self, index: int, /) -> int: ...
    def __setitem__(self, index: int, value: int, /) -> None: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[int]: ...


SharedWords = ctypes.Array[ctypes.c_uint64]
"""Words that several kernel nodes pass as parameters."""


class KernelNodeHandle(Protocol):
    """A kernel node that was added, with its parameters in memory for later updates."""

    @property
    def node(self) -> Any:
        """The node, as a dependency of others."""

    @property
    def values(self) -> Words:
        """Its parameters; an update passes their values at that time."""

    def share(self, position: int, words: SharedWords, number: int) -> None:
        """Let updates pass, for one parameter, the value of a shared word at that time."""


class CapturedKernelHandle(Protocol):
    """A kernel node that a library's call was captured as."""

    @property
    def node(self) -> Any:
        """The node, as a dependency of others."""

    def take(self, parameters: Any) -> None:
        """Let updates pass these parameters from now on, which `Driver.recapture` found for it."""


class GraphMemory(Protocol):
    """Memory that each launch of a graph allocates at one node and frees at another."""

    @property
    def pointer(self) -> int:
        """The address, in all launches; a multiple of 256."""

    @property
    def nbytes(self) -> int:
        """The size."""

    @property
    def node(self) -> Any:
        """The node that allocates it, as a dependency of others."""


@dataclass(frozen=True, slots=True, eq=False)
class NodeView:
    """A node of a graph or a body, and its key.

    `kind` is CUDA's, `details` are what it knows of the node. `parent` is the position of the
    conditional node whose body it is in, and `branch` the number of that body.
    """

    node: Any
    key: Hashable
    kind: str
    details: Mapping[str, Any]
    parent: int | None
    branch: int


@dataclass(frozen=True, slots=True, eq=False)
class NodesView:
    """All nodes of a graph, those of bodies behind their node, and the edges between positions.

    `programmatic` are the edges that are.
    """

    nodes: tuple[NodeView, ...]
    edges: frozenset[tuple[int, int]]
    programmatic: frozenset[tuple[int, int]]


class TiedGraph(Protocol):
    """A complete graph that keeps alive what its nodes point to."""

    @property
    def definition(self) -> Any:
        """The graph, to give away."""
