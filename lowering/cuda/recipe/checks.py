"""Checks: what a recipe names must be there, and addresses are inside of their memory.

What kernels do with an address is their own: code in a file must be trusted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from operator import gt
from typing import get_args

from lowering.cuda.recipe.recipe import (
    ALIGNMENT,
    Allocate,
    Base,
    ConditionalKind,
    Free,
    Library,
    Node,
    Recipe,
    RecipeConditional,
    RecipeKernel,
    Relocation,
)
from lowering.plan.target.features import Feature
from tracegraph.errors import MalformedTargetError

_MOST = 1 << 62
_MOST_GRID = (2**31 - 1, 65535, 65535)
_MOST_THREADS = 1024
_MOST_SHARED = 1 << 20
_BODIES: Mapping[ConditionalKind, int] = {ConditionalKind.IF_ELSE: 2, ConditionalKind.WHILE: 1}


def _require(holds: bool, problem: str) -> None:
    if not holds:
        raise MalformedTargetError(problem)


def _is_name(name: str) -> bool:
    """Whether it is that of an entry with code or a constant: a digest, and what it is."""
    digest, _, kind = name.partition(".")
    return kind in ("bin", "cubin") and len(digest) == 32 and {*digest} <= _DIGITS


_DIGITS = {*"0123456789abcdef"}


def require_sound(recipe: Recipe) -> None:
    """Check a recipe.

    Raises:
        MalformedTargetError: it names what is not there.
    """
    number = recipe.arch.removeprefix("sm_")
    named = recipe.arch.startswith("sm_") and number.isascii() and number.isdecimal()
    _require(named and 2 <= len(number) <= 3, "it names no architecture")
    _require(0 <= recipe.arena.nbytes < _MOST, "its scratch has no size")
    _require(0 <= recipe.fixed_bytes < _MOST, "its fixed memory has no size")
    _require(all(map(_is_name, recipe.codes)), "a cubin has no name")
    for constant in recipe.constants:
        _require(_is_name(constant.data), "a constant has no name")
        _require(constant.offset % ALIGNMENT == 0, "a constant is not aligned")
        _require(
            0 <= constant.offset < _MOST and 0 <= constant.nbytes < _MOST, "a constant is none"
        )
    for function in recipe.functions:
        _require(0 <= function.code < len(recipe.codes), "there is no such cubin")
    _require(-1 <= recipe.probe < len(recipe.codes), "there is no such cubin")
    _require("body_updates" not in recipe.needs or recipe.probe >= 0, "it has no probe")
    _require(set(recipe.needs) <= set(get_args(Feature)), "it needs a feature that there is not")
    _require_inputs(recipe)
    _require_nodes(recipe)
    _require_calls(recipe)


def _require_inputs(recipe: Recipe) -> None:
    loads = recipe.nodes[recipe.load] if 0 <= recipe.load < len(recipe.nodes) else None
    _require(recipe.load == -1 or isinstance(loads, RecipeKernel), "its load kernel is none")
    words = len(loads.parameters) if isinstance(loads, RecipeKernel) else 0
    for each in recipe.inputs:
        slot = each.slot
        _require(0 < each.alignment <= 1 << 20, "an input has no alignment")
        if slot is not None:
            inside = slot.offset >= 0 and slot.offset + 8 * slot.words <= recipe.fixed_bytes
            passed = slot.parameter > 0 and slot.parameter + slot.words <= words
            fits = slot.words > 0 and each.type.nbytes <= 8 * slot.words
            _require(inside and passed and fits, "a small input has no place")
    for output in recipe.outputs:
        known = -1 <= output.over < len(recipe.inputs)
        _require(known, "there is no such input")
        if output.over >= 0:
            same = recipe.inputs[output.over].type == output.type
            _require(same, "a result is written over an input of another type")


class _Nodes:
    """The nodes so far."""

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe
        self.graphs = 1
        self.conditions: set[int] = set()
        self.places: list[int] = []  # the graph of each node

    def require_behind(self, graph: int, behind: Sequence[int]) -> None:
        known = len(self.places)
        for each in behind:
            if not 0 <= each < known or self.places[each] != graph:
                raise MalformedTargetError("a node waits for none of its graph")
        _require(len({*behind}) == len(behind), "a node waits twice for another")

    def require_graph(self, graph: int) -> None:
        _require(0 <= graph < self.graphs, "there is no such graph")


def _require_nodes(recipe: Recipe) -> None:
    sizes = _sizes(recipe)
    nodes = _Nodes(recipe)
    for number, node in enumerate(recipe.nodes):
        graph = 0 if isinstance(node, Allocate | Free) else node.graph
        nodes.require_graph(graph)
        if not isinstance(node, Allocate):
            nodes.require_behind(graph, node.behind)
        _require(0 <= node.label < len(recipe.labels), "there is no such label")
        _require_node(recipe, node, number, nodes, sizes)
        nodes.places.append(graph)
    per_launch = recipe.arena.per_launch
    allocations = sum(isinstance(node, Allocate) for node in recipe.nodes)
    frees = sum(isinstance(node, Free) for node in recipe.nodes)
    _require(allocations == frees == per_launch, "its scratch is not allocated as it says")
    _require(len(nodes.conditions) == len(recipe.conditions), "a condition belongs to no node")


def _require_node(recipe: Recipe, node: Node, number: int, nodes: _Nodes, sizes: _Sizes) -> None:
    match node:
        case RecipeKernel():
            _require(0 <= node.function < len(recipe.functions), "there is no such function")
            nodes.require_behind(node.graph, node.primaries)
            for each in node.primaries:
                _require(isinstance(recipe.nodes[each], RecipeKernel), "a primary is no kernel")
            grid = min(node.grid) > 0 and not any(map(gt, node.grid, _MOST_GRID))
            block = min(node.block) > 0 and prod(node.block) <= _MOST_THREADS
            cluster = node.cluster == (0, 0, 0) or (
                min(node.cluster) > 0 and prod(node.cluster) <= 16
            )
            shared = 0 <= node.shared_bytes <= _MOST_SHARED
            _require(grid and block and cluster and shared, "a kernel cannot be launched so")
            for place in node.parameters:
                _require_place(place, sizes)
        case RecipeConditional():
            first = nodes.graphs
            bodies = tuple(range(first, first + len(node.bodies)))
            wanted = _BODIES.get(node.kind, max(len(bodies), 1))
            _require(node.bodies == bodies and len(bodies) == wanted, "a conditional has no bodies")
            known = 0 <= node.condition < len(recipe.conditions)
            _require(known and node.condition not in nodes.conditions, "a condition is none")
            _require(recipe.conditions[node.condition] == node.graph, "its condition is elsewhere")
            nodes.conditions.add(node.condition)
            nodes.graphs += len(bodies)
        case Allocate():
            _require(number == 0, "scratch is allocated too late")
        case Free():
            _require(bool(node.behind), "scratch is freed at once")
        case Library():
            _require(0 <= node.call < len(recipe.calls), "there is no such call")


def _require_calls(recipe: Recipe) -> None:
    sizes = _sizes(recipe)
    for buffer in recipe.buffers:
        _require_place(buffer.place, sizes)
        _require(Base.INPUT <= buffer.place.base <= Base.CONSTANTS, "a buffer is in no memory")
    for call in recipe.calls:
        _require(0 <= call.workspace < 1 << 16, "a call has no workspace")
        _require(all(0 <= m < len(recipe.buffers) for m in call.moving), "a call moves no buffer")
        if call.pointers is not None:
            _require_place(call.pointers, sizes)
            _require(call.pointers.base is Base.FIXED, "pointer arrays are in no memory")
    made = sorted(node.call for node in recipe.nodes if isinstance(node, Library))
    _require(made == list(range(len(recipe.calls))), "a call is made twice, or never")
    _require(len(recipe.records) == len(recipe.prints), "a print has no types")


_Sizes = Sequence[tuple[int, int]]
"""How many of each base there are, and the bytes behind each, by the number of the base."""


def _sizes(recipe: Recipe) -> _Sizes:
    sizes = {
        Base.INPUT: (len(recipe.inputs), 0),
        Base.OUTPUT: (len(recipe.outputs), 0),
        Base.ARENA: (1, recipe.arena.nbytes),
        Base.FIXED: (1, recipe.fixed_bytes),
        Base.CONSTANTS: (1, recipe.constant_bytes),
        Base.CONDITION: (len(recipe.conditions), 0),
        Base.STOP_FLAG: (1, 0),
        Base.FAILURE: (1, 0),
        Base.STEPS: (len(recipe.monitors), 0),
        Base.PRINT_RING: (1, 0),
        Base.PRINT_SITE: (len(recipe.prints), 0),
    }
    return [sizes.get(base, (0, 0)) for base in Base]


def _require_place(place: Relocation, sizes: _Sizes) -> None:
    if place.base is Base.NUMBER:
        return
    count, nbytes = sizes[place.base]
    if not (0 <= place.index < count and 0 <= place.offset <= nbytes):
        problem = f"{place.base.name} {place.index} has no byte {place.offset}"
        raise MalformedTargetError(problem)
