"""A recipe with every kind of node and of place, and what the C loader does with a recipe."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lowering.cuda.recipe.recipe import (
    Allocate,
    Arena,
    Base,
    ConditionalKind,
    Free,
    InputSlot,
    Label,
    Recipe,
    RecipeConditional,
    RecipeConstant,
    RecipeFunction,
    RecipeInput,
    RecipeKernel,
    RecipeOutput,
    Relocation,
)
from tracegraph import ArrayType
from tracegraph.ir.effects import Failure
from tracegraph.progress import Monitor

WIDE = (3, 1, 1)
ONE = (1, 1, 1)
NO_CLUSTER = (0, 0, 0)

LOADED = (
    Relocation(Base.FIXED),
    Relocation(Base.NUMBER),
)
WORDS = (
    Relocation(Base.INPUT, 0),
    Relocation(Base.INPUT, 1),
    Relocation(Base.INPUT, 2),
    Relocation(Base.OUTPUT, 0, 16),
    Relocation(Base.ARENA, offset=256),
    Relocation(Base.FIXED, offset=512),
    Relocation(Base.CONSTANTS, offset=256),
    Relocation(Base.NUMBER, offset=2**64 - 1),
)
SIGNALS = (
    Relocation(Base.CONDITION, 0),
    Relocation(Base.STOP_FLAG),
    Relocation(Base.FAILURE),
    Relocation(Base.STEPS, 1),
)


def kernel(
    function: int,
    parameters: tuple[Relocation, ...],
    behind: tuple[int, ...] = (),
    primaries: tuple[int, ...] = (),
    *,
    graph: int = 0,
    cluster: tuple[int, int, int] = NO_CLUSTER,
    shared: int = 0,
    cooperative: bool = False,
    grid: tuple[int, int, int] = WIDE,
) -> RecipeKernel:
    return RecipeKernel(
        graph, function, grid, (128, 1, 1), cluster, shared, cooperative, cooperative, parameters,
        behind, primaries, 0,
    )  # fmt: skip


EVERY_KIND = Recipe(
    name="every_kind",
    arch="sm_90",
    cuda=(12, 8),
    needs=(),
    inputs=(
        RecipeInput(ArrayType("float32", (4, 5)), 4),
        RecipeInput(ArrayType("int64"), 8, InputSlot(0, 1, 1)),
        RecipeInput(ArrayType("float64", (8,)), 8),
    ),
    outputs=(
        RecipeOutput(ArrayType("float32", (20,))),
        RecipeOutput(ArrayType("float64", (8,)), 2),
        RecipeOutput(ArrayType("bool", (0, 2))),
    ),
    arena=Arena(4096, per_launch=True),
    fixed_bytes=1024,
    constants=(RecipeConstant(0, 8, "one"), RecipeConstant(256, 12, "two")),
    codes=("first", "second"),
    functions=(RecipeFunction(0, "load"), RecipeFunction(1, "work"), RecipeFunction(0, "set")),
    conditions=(0, 1, 2),
    nodes=(
        Allocate(0),
        kernel(0, LOADED, grid=ONE),
        kernel(1, WORDS, (0,), (1,), cluster=(2, 1, 1), shared=65536),
        kernel(2, SIGNALS, (), (1, 2)),
        RecipeConditional(0, ConditionalKind.WHILE, 0, (1,), (2, 3), 1),
        kernel(2, (Relocation(Base.CONDITION, 1), *SIGNALS[:3]), graph=1),
        RecipeConditional(1, ConditionalKind.IF_ELSE, 1, (2, 3), (5,), 1),
        kernel(2, (Relocation(Base.CONDITION, 2), *SIGNALS[:3]), graph=2, cooperative=True,
               grid=(200, 1, 1)),
        RecipeConditional(2, ConditionalKind.SWITCH, 2, (4, 5, 6), (7,), 1),
        kernel(1, WORDS, graph=5),
        kernel(2, SIGNALS, graph=3),
        kernel(2, SIGNALS, (), (5,), graph=1),
        Free((4,), 0),
    ),
    labels=(Label("kernel", "of a test", "test.py:3"), Label("loop", "k", "")),
    load=1,
    waits=True,
    failures=(Failure("CheckError", "x must be positive", None),),
    monitors=(Monitor("a", None, None, None), Monitor("b", 3, None, None)),
)  # fmt: skip
"""Not a sensible program."""


def code_of(recipe: Recipe) -> dict[str, bytes]:
    """Code for the fake driver, and constants: what a recipe's names stand for."""
    counts: dict[int, int] = {}
    for node in recipe.nodes:
        if isinstance(node, RecipeKernel):
            assert counts.setdefault(node.function, len(node.parameters)) == len(node.parameters)
    found = {
        name: "".join(
            f"{function.name} {counts.get(number, 0)}\n"
            for number, function in enumerate(recipe.functions)
            if function.code == code
        ).encode() + b"\0"
        for code, name in enumerate(recipe.codes)
    }  # fmt: skip
    return found | {c.data: np.arange(c.nbytes, dtype=np.uint8).tobytes() for c in recipe.constants}


MEMORY = ("arena", "fixed", "constants", "stop_flag", "mailbox")
"""What the C loader allocates, in this order, where there is any of it."""


def calls_of(recipe: Recipe) -> list[str]:
    """What the fake driver logs when the C loader builds the graph of a recipe."""
    sizes = {
        "arena": 0 if recipe.arena.per_launch else recipe.arena.nbytes,
        "fixed": recipe.fixed_bytes,
        "constants": recipe.constant_bytes,
        "stop_flag": 4,
        "mailbox": 8 * (1 + len(recipe.monitors)),
    }
    memory = {name: i for i, name in enumerate(name for name in MEMORY if sizes[name])}
    calls = [
        f"code {sum(function.code == code for function in recipe.functions)}"
        for code in range(len(recipe.codes))
    ]
    calls += [f"allocate memory{memory[name]} {sizes[name]}" for name in [*memory][:-1]]
    if recipe.fixed_bytes:
        calls.append(f"clear memory{memory['fixed']}:0 {recipe.fixed_bytes}")
    calls.append(f"clear memory{memory['stop_flag']}:0 4")
    for constant in recipe.constants:
        if constant.nbytes:
            at = f"memory{memory['constants']}:{constant.offset}"
            calls.append(f"upload {at} {constant.nbytes}")
    calls.append(f"pin memory{memory['mailbox']} {sizes['mailbox']}")
    if recipe.arena.per_launch:
        memory["arena"] = len(memory)
    numbers: dict[int, int] = {}  # conditions are made where they are used first
    allowed: dict[int, int] = {}
    for number, node in enumerate(recipe.nodes):
        calls += _node_calls(recipe, number, node, memory, numbers, allowed)
    return [*calls, "instantiate"]


def _node_calls(
    recipe: Recipe,
    number: int,
    node: object,
    memory: dict[str, int],
    numbers: dict[int, int],
    allowed: dict[int, int],
) -> Iterator[str]:
    edges = [str(b) for b in getattr(node, "behind", ())]
    edges += [f"{b}p" for b in getattr(node, "primaries", ())]
    start = f"node {number} graph {getattr(node, 'graph', 0)} behind"
    start = " ".join([start, *edges])
    match node:
        case RecipeKernel():
            function = recipe.functions[node.function].name
            words = [word_of(recipe, place, memory, numbers) for place in node.parameters]
            if node.shared_bytes > max(48 * 1024, allowed.get(node.function, 0)):
                allowed[node.function] = node.shared_bytes
                yield f"allow {function} {node.shared_bytes}"
            first, *rest = node.grid
            grid = [min(first, 132) if node.adapts else first, *rest]
            yield " ".join(
                [f"{start} kernel {function} grid", *map(str, grid), "block",
                 *map(str, node.block), f"shared {node.shared_bytes} passes", *words]
            )  # fmt: skip
            if node.cooperative:
                yield f"cooperative {number} 1"
            if any(node.cluster):
                yield " ".join(["cluster", str(number), *map(str, node.cluster)])
        case RecipeConditional():
            condition = numbers.setdefault(node.condition, len(numbers))
            bodies = " ".join(map(str, node.bodies))
            yield f"{start} conditional {int(node.kind)} {condition} bodies {bodies}"
        case Allocate():
            yield f"allocate memory{memory['arena']} {recipe.arena.nbytes}"
            yield f"{start} allocates {recipe.arena.nbytes}"
        case Free():
            yield f"{start} frees memory{memory['arena']}:0"


def word_of(
    recipe: Recipe, place: Relocation, memory: dict[str, int], numbers: dict[int, int]
) -> str:
    """A parameter, as the fake driver writes it before the first launch."""
    offset = place.offset
    match place.base:
        case Base.INPUT if recipe.inputs[place.index].slot is not None:
            offset += recipe.inputs[place.index].slot.offset
            return f"memory{memory['fixed']}:{offset}"
        case Base.NUMBER | Base.INPUT | Base.OUTPUT:
            return str(offset)
        case Base.CONDITION:
            return f"condition:{numbers.setdefault(place.index, len(numbers))}"
        case Base.STEPS:
            return f"memory{memory['mailbox']}:{8 * (1 + place.index)}"
        case Base.FAILURE:
            return f"memory{memory['mailbox']}:0"
    return f"memory{memory[place.base.name.lower()]}:{offset}"
