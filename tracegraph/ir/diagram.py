"""A Program as a diagram: a box for each parameter and operation, regions inside of theirs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tracegraph.inspection.diagram import Box, Diagram, DiagramRegion, Edge, Facts
from tracegraph.inspection.palette import Tone
from tracegraph.inspection.source_text import source_text
from tracegraph.ir import program as ir
from tracegraph.ir.control_forms import is_loop
from tracegraph.ir.op import (
    Call,
    Control,
    Effect,
    Elementwise,
    Indexed,
    Opaque,
    Reduction,
    Scan,
    Scatter,
)
from tracegraph.ir.text import atom_text, attrs_text, program_line, role_names, value_names

Names = Mapping[ir.Value, str]

_TONES: Mapping[type, Tone] = {
    Elementwise: "compute",
    Indexed: "move",
    Scatter: "move",
    Reduction: "fold",
    Scan: "fold",
    Opaque: "library",
    Control: "branch",
    Call: "plain",
    Effect: "effect",
}
"""Tones of operations by their form; loops have one of their own."""


def program_diagram(program: ir.Program) -> Diagram:
    """The picture of a Program. Values have the names that they have in its text."""
    names = value_names(program)
    constants = frozenset(program.body.params[len(program.inputs) :])
    _, _, summary = program_line(program).partition(": ")
    region = _region("", program.body, names, constants)
    return Diagram(f"program {program.name}", summary, region)


def _region(
    label: str, region: ir.Region, names: Names, constants: frozenset[ir.Value] = frozenset()
) -> DiagramRegion:
    boxes = [_parameter(value, names, value in constants) for value in region.params]
    origins = {value: (number, 0) for number, value in enumerate(region.params)}
    edges: dict[Edge, None] = {}

    def connect(atoms: Sequence[ir.Atom]) -> None:
        for atom in atoms:
            if isinstance(atom, ir.Value) and atom in origins:
                source, port = origins[atom]
                edges[Edge(source, len(boxes), port)] = None

    for eqn in region.eqns:
        connect(eqn.operands)
        origins.update({value: (len(boxes), port) for port, value in enumerate(eqn.outputs)})
        boxes.append(_operation(eqn, names))
    connect(region.results)
    boxes.append(_results(region, names))
    return DiagramRegion(label, tuple(boxes), tuple(edges))


def _parameter(value: ir.Value, names: Names, is_constant: bool) -> Box:
    title = _typed(value, names)

    def facts() -> Facts:
        return {"value": title, "bytes": f"{value.type.nbytes:,}"}

    if is_constant:
        return Box(title, caption="constant", tone="constant", values=(title,), near_use=True,
                   facts=facts)  # fmt: skip
    return Box(title, tone="input", values=(title,), facts=facts)


def _results(region: ir.Region, names: Names) -> Box:
    results = [f"{atom_text(a, names)}: {a.type}" for a in region.results]
    return Box("return", tuple(results), tone="output", tooltip=_listed("return", results))


def _operation(eqn: ir.Eqn, names: Names) -> Box:
    title = " ".join((eqn.op.name, *[atom_text(a, names) for a in eqn.operands]))
    values = tuple([_typed(value, names) for value in eqn.outputs])
    sources = () if eqn.source is None else (eqn.source,)
    regions = [
        _region(role, region, names)
        for role, region in zip(role_names(eqn), eqn.regions, strict=True)
    ]

    def facts() -> Facts:
        return _facts(eqn, title, names)

    return Box(
        title,
        tuple(filter(None, (*values, attrs_text(eqn), *map(str, sources)))),
        eqn.hints.construct or "",
        "loop" if eqn.regions and is_loop(eqn) else _TONES.get(type(eqn.op.form), "plain"),
        "\n".join(filter(None, (_listed(title, values), source_text(sources)))),
        values,
        tuple(regions),
        not any(isinstance(a, ir.Value) for a in eqn.operands),
        facts,
    )


def _facts(eqn: ir.Eqn, title: str, names: Names) -> Facts:
    operands = [f"{atom_text(a, names)}: {a.type}" for a in eqn.operands]
    values = [_typed(value, names) for value in eqn.outputs]
    said = {
        "operation": title,
        "what it does": eqn.op.doc,
        "line": source_text(() if eqn.source is None else (eqn.source,)),
        "operands": "\n".join(operands),
        "results": "\n".join(values),
        "bytes of results": f"{sum(value.type.nbytes for value in eqn.outputs):,}",
        "attributes": "\n".join(f"{name} = {value}" for name, value in eqn.attrs.items()),
        "hints": "\n".join(f"{name} = {value}" for name, value in eqn.hints.given().items()),
    }
    return {name: text for name, text in said.items() if text}


def _typed(value: ir.Value, names: Names) -> str:
    return f"{names.get(value, '<undefined>')}: {value.type}"


def _listed(title: str, values: Iterable[str]) -> str:
    return "\n".join((title, *values))
