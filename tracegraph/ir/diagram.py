"""A Program as a diagram: a box for each parameter and operation, regions inside of theirs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from tracegraph.inspection.argument_paths import grouped, large_roots, listed
from tracegraph.inspection.diagram import Box, Diagram, DiagramRegion, Edge, Facts, boxes_in
from tracegraph.inspection.groups import BoxGroup, alike_runs, repeated, with_groups
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
from tracegraph.ir.program import Program
from tracegraph.ir.record import replace
from tracegraph.ir.text import atom_text, attrs_text, program_line, role_names, value_names
from tracegraph.user_source import lines_of

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


def program_diagram(program: Program) -> Diagram:
    """The picture of a Program. Values have the names that they have in its text.

    An argument of very many arrays is one box, which a click opens. In a large region, so is what
    is repeated, and each run of elementwise operations.
    """
    names = value_names(program)
    _, _, summary = program_line(program).rpartition(": ")
    constants = frozenset(program.body.params[len(program.inputs) :])
    drawn = [_parameter(v, names, v in constants) for v in program.body.params]
    region = _with_large_arguments(_region("", program.body, names, drawn), program)
    return Diagram(f"program {program.name}", summary, _with_runs(region))


def _region(
    label: str, region: ir.Region, names: Names, parameters: Sequence[Box]
) -> DiagramRegion:
    boxes = [*parameters]
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


def _inner(label: str, region: ir.Region, names: Names) -> DiagramRegion:
    """A region inside of an operation, with those of its parameters that it reads."""
    read = {atom for eqn in region.eqns for atom in eqn.operands} | {*region.results}
    params = tuple([value for value in region.params if value in read])
    drawn = [_parameter(value, names, False) for value in params]
    return _with_runs(_region(label, replace(region, params=params), names, drawn))


_LARGE_REGION, _VERY_LARGE_REGION, _SHORTEST_RUN, _LONGEST_RUN = 48, 160, 4, 32
_FEWEST_COPIES, _FEWEST_REPEATED = 3, 24


def _with_runs(region: DiagramRegion) -> DiagramRegion:
    """A region of many boxes with one box for what a loop of Python repeats, and for runs."""
    if len(region.boxes) < _LARGE_REGION:
        return region
    keys = [(box.title.partition(" ")[0], box.sources) for box in region.boxes]
    found = repeated(keys)
    if found is not None and found[2] >= _FEWEST_COPIES and found[1] * found[2] >= _FEWEST_REPEATED:
        start, period, copies = found
        members = tuple(range(start, start + period * copies))
        box = _run(region.boxes[start : start + period], "repeated", copies)
        region = with_groups(region, [BoxGroup(members, box, _with_elementwise_runs)])
    return _with_elementwise_runs(region)


def _with_elementwise_runs(region: DiagramRegion) -> DiagramRegion:
    """A region of many boxes with one box for each run of elementwise operations; of very many,
    with one for each run of any operations but loops and branches.
    """

    def is_elementwise(box: Box) -> bool:
        return box.tone == "compute" and not box.regions

    def is_plain(box: Box) -> bool:
        return bool(box.sources) and (box.is_folded or not box.regions)

    for fewest, caption, fits in (
        (_LARGE_REGION, "elementwise", is_elementwise),
        (_VERY_LARGE_REGION, "several", is_plain),
    ):
        if len(region.boxes) >= fewest:
            boxes = region.boxes
            kinds = [caption if fits(box) else None for box in boxes]
            runs = alike_runs(len(boxes), kinds.__getitem__, _SHORTEST_RUN, _LONGEST_RUN)
            groups = [BoxGroup(run, _run([boxes[k] for k in run], caption)) for run in runs]
            region = with_groups(region, groups)
    return region


def _run(boxes: Sequence[Box], caption: str, copies: int = 1) -> Box:
    """The box for operations and their copies: how many there are of each op, and their lines."""
    single = DiagramRegion("", tuple(boxes), ())
    titles = [box.title for box in boxes_in(single) if not box.is_folded]
    counts = Counter([title.partition(" ")[0] for title in titles])
    named = [name if count == 1 else f"{name} ×{count}" for name, count in counts.most_common()]
    sources = tuple(dict.fromkeys([source for box in boxes for source in box.sources]))
    title = f"{len(titles)} operations" if copies == 1 else f"{len(titles)} operations ×{copies}"
    listed = lines_of(sources[:3]) + (f", … {len(sources) - 3} more" if len(sources) > 3 else "")
    lines = (", ".join(named), *filter(None, [listed]))
    return Box(
        title,
        lines,
        caption,
        "compute" if caption == "elementwise" else "plain",
        "\n".join((title, *lines)),
        facts=lambda: {"operations": "\n".join(titles)},
        sources=sources,
    )


def _with_large_arguments(region: DiagramRegion, program: Program) -> DiagramRegion:
    """The region with one box for all inputs of an argument with very many."""
    paths = program.paths()
    types = [str(value.type) for value in program.inputs]
    groups = []
    for name, members in large_roots(paths).items():
        lines = tuple(listed(grouped([paths[k] for k in members], [types[k] for k in members])))
        nbytes = sum([program.inputs[k].type.nbytes for k in members])
        title = f"{name}: {len(members)} arrays"
        facts = {"arrays": "\n".join(lines), "bytes": f"{nbytes:,}"}
        box = Box(title, lines, tone="input", values=(name,), tooltip="\n".join((title, *lines)),
                  facts=partial(dict, facts))  # fmt: skip
        groups.append(BoxGroup(tuple(members), box, one_port=True))
    return with_groups(region, groups)


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
        _inner(role, region, names)
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
        sources,
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
