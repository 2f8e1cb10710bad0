"""Writing of flat files: a recipe with its cubins and constants, as one sequence of bytes.

What C cannot have is refused here, with the user's line: calls of libraries, which are captured
again by the loader of a recipe, and prints, which a thread of Python shows.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lowering.cuda.recipe.flat.layout import (
    ALIGNMENT,
    BASES,
    HEADER,
    MAGIC,
    NODE_KINDS,
    NONE,
    SECTION,
    SECTIONS,
    VERSION,
)
from lowering.cuda.recipe.recipe import (
    Allocate,
    Base,
    Free,
    Library,
    Node,
    Recipe,
    RecipeConditional,
    RecipeKernel,
    Relocation,
)
from lowering.cuda.recipe.targets import recipe_of
from lowering.plan.nests.rounding import round_up
from tracegraph.errors import UnsavableError
from tracegraph.ir.types import ArrayType
from tracegraph.staging.program_function import StoredTarget

_BY_NAME = {record.name: record for record in SECTIONS}


class _Records:
    """The records of all sections, as they are added."""

    def __init__(self) -> None:
        self._rows: dict[str, list[tuple[Any, ...]]] = {record.name: [] for record in SECTIONS}
        self._text: dict[str, int] = {}
        self._bytes: dict[str, bytearray] = {"text": bytearray(), "data": bytearray()}
        self.text("")

    def add(self, section: str, /, **fields: Any) -> None:
        """Add a record; fields that are not given are zero."""
        record = _BY_NAME[section]
        zero = {field: 0 if "[" not in type_ else (0, 0, 0) for field, type_ in record.fields}
        assert fields.keys() <= zero.keys(), "fields of another record"
        self._rows[section].append(tuple((zero | fields).values()))

    def count(self, name: str) -> int:
        """How many there are."""
        return len(self._rows[name])

    def text(self, text: str) -> int:
        """Where a text begins, which is kept once."""
        if text not in self._text:
            self._text[text] = len(self._bytes["text"])
            self._bytes["text"] += text.replace("\0", " ").encode() + b"\0"
        return self._text[text]

    def data(self, data: bytes) -> int:
        """Where bytes begin."""
        target = self._bytes["data"]
        target += bytes(-len(target) % ALIGNMENT)
        target += data
        return len(target) - len(data)

    def section(self, name: str, dtype: np.dtype[np.void]) -> bytes:
        """The bytes of a section."""
        if name in self._bytes:
            return bytes(self._bytes[name])
        return np.array(self._rows[name], dtype).tobytes()


def flat_file_of(target: StoredTarget, inputs: Sequence[str], outputs: Sequence[str]) -> bytes:
    """As `Compiler.flat_file_of`."""
    return flat_file(recipe_of(target), target.data, inputs, outputs)


def c_loader() -> Path:
    """The header that reads flat files."""
    return Path(__file__).with_name("tracegraph_load.h")


def flat_file(
    recipe: Recipe,
    data: Mapping[str, bytes],
    inputs: Sequence[str],
    outputs: Sequence[str],
) -> bytes:
    """The flat file of a recipe, whose cubins and constants are in `data` by name.

    Arguments and results have the names `inputs` and `outputs`.

    Raises:
        UnsavableError: the recipe has calls of libraries, or prints.
    """
    _refuse(recipe)
    records = _Records()
    used = sorted({function.code for function in recipe.functions})
    for number in used:
        code = data[recipe.codes[number]]
        records.add("code", data=records.data(code), nbytes=len(code))
    for function in recipe.functions:
        code_number = used.index(function.code)
        records.add("function", code=code_number, name=records.text(function.name))
    starts = {name: records.data(data[name]) for name in {c.data: None for c in recipe.constants}}
    for constant in recipe.constants:
        start = starts[constant.data]
        records.add("constant", offset=constant.offset, nbytes=constant.nbytes, data=start)
    for graph in recipe.conditions:
        records.add("condition", graph=graph)
    for node in recipe.nodes:
        _add_node(records, recipe, node)
    for name, argument in zip(inputs, recipe.inputs, strict=True):
        slot = argument.slot
        records.add(
            "input",
            **_described(records, name, argument.type),
            alignment=max(argument.alignment, argument.type.dtype.itemsize),
            slot_offset=0 if slot is None else slot.offset,
            slot_parameter=0 if slot is None else slot.parameter,
            slot_words=0 if slot is None else slot.words,
        )
    for name, output in zip(outputs, recipe.outputs, strict=True):
        over = NONE if output.over < 0 else output.over
        records.add("output", **_described(records, name, output.type), over=over)
    for failure in recipe.failures:
        error, message = records.text(failure.error), records.text(failure.message)
        records.add("failure", error=error, message=message)
    records.add(
        "program",
        name=records.text(recipe.name),
        arena_bytes=recipe.arena.nbytes,
        per_launch=recipe.arena.per_launch,
        fixed_bytes=recipe.fixed_bytes,
        constant_bytes=recipe.constant_bytes,
        graph_count=recipe.graphs,
        monitor_count=len(recipe.monitors),
        load=NONE if recipe.load < 0 else recipe.load,
    )
    return _assembled(recipe, records)


def _refuse(recipe: Recipe) -> None:
    for node in recipe.nodes:
        if isinstance(node, Library):
            label = recipe.labels[node.label]
            raise UnsavableError(
                f"{recipe.name} has {label.name} at {label.lines}, which a library of NVIDIA "
                "computes; a program for C calls no library: libraries=False computes it by "
                "kernels of our own instead"
            )
    for printed in recipe.prints:
        raise UnsavableError(
            f"{recipe.name} prints {printed.template!r} at {printed.source}; a program for C "
            "prints nothing: return the value instead"
        )


def _described(records: _Records, name: str, type_: ArrayType) -> dict[str, int]:
    first = records.count("extent")
    for extent in type_.shape:
        records.add("extent", extent=extent)
    return {
        "nbytes": type_.nbytes,
        "name": records.text(name),
        "dtype": records.text(str(type_.dtype)),
        "axis_count": type_.ndim,
        "first_extent": first,
    }


def _add_node(records: _Records, recipe: Recipe, node: Node) -> None:
    label = recipe.labels[node.label]
    where = f" at {label.lines}" if label.lines else ""
    fields: dict[str, Any] = {
        "label": records.text(f"{label.kind} {label.name}{where}"),
        "first_edge": records.count("edge"),
        "first_parameter": records.count("parameter"),
    }
    kind = ""
    match node:
        case RecipeKernel():
            kind = "kernel"
            fields |= {
                "graph": node.graph,
                "function": node.function,
                "grid": node.grid,
                "block": node.block,
                "cluster": node.cluster,
                "shared_bytes": node.shared_bytes,
                "cooperative": node.cooperative,
                "adapts": node.adapts,
                "parameter_count": len(node.parameters),
            }
            for place in node.parameters:
                _add_parameter(records, place)
        case RecipeConditional():
            kind = node.kind.word
            fields |= {
                "graph": node.graph,
                "condition": node.condition,
                "body_count": len(node.bodies),
            }
        case Allocate():
            kind = "allocate"
        case Free():
            kind = "free"
    edges = [(before, False) for before in getattr(node, "behind", ())]
    edges += [(before, True) for before in getattr(node, "primaries", ())]
    for before, programmatic in edges:
        records.add("edge", before=before, programmatic=programmatic)
    records.add("node", kind=NODE_KINDS.index(kind), edge_count=len(edges), **fields)


def _add_parameter(records: _Records, place: Relocation) -> None:
    base = BASES.index(Base(place.base).name.lower())
    records.add("parameter", base=base, index=place.index, offset=place.offset)


def _assembled(recipe: Recipe, records: _Records) -> bytes:
    """The header, the table of sections, and the sections."""
    table = HEADER.dtype.itemsize
    end = round_up(table + SECTION.dtype.itemsize * len(SECTIONS), ALIGNMENT)
    sections, parts = [], []
    for record in SECTIONS:
        part = records.section(record.name, record.dtype)
        size = record.dtype.itemsize
        sections.append((end, len(part) // size, size, 0))
        padded = round_up(len(part), ALIGNMENT)
        parts.append(part + bytes(padded - len(part)))
        end += padded
    written = np.array(sections, SECTION.dtype).tobytes()
    body = written + bytes(-(table + len(written)) % ALIGNMENT) + b"".join(parts)
    # cubins run on all drivers of their major version; what graphs need is in 12.8
    driver = max(1000 * recipe.cuda[0], 12080)
    header = (
        np.frombuffer(MAGIC, np.uint8),
        VERSION,
        int(recipe.arch.removeprefix("sm_")),
        driver,
        len(SECTIONS),
        table + len(body),
        table,
        zlib.crc32(body),
        0,
        (0, 0),
    )
    return np.array(header, HEADER.dtype).tobytes() + body
