"""A Plan as a diagram: a box for each node as it is launched, bodies and phases inside.

What a box says comes from the node protocol, so every kind of node has a picture. The nodes are
those of the launch graph.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from lowering.plan.construct import Construct, Inlined
from lowering.plan.launch_nodes import AllocationNode, FreeNode, LaunchKernelNode
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nodes import Graph, Node, launched
from lowering.plan.plan import Plan
from lowering.plan.reports.explain import becomes, schedule_text
from lowering.plan.reports.node_times import NodeTime
from lowering.plan.reports.profile import Profile
from lowering.plan.reports.text import plan_line
from tracegraph.generated.dataclass import dataclass
from tracegraph.inspection.diagram import Box, Diagram, DiagramRegion, Edge, Facts, seconds_text
from tracegraph.inspection.groups import BoxGroup, repeated, with_groups
from tracegraph.inspection.source_text import source_text
from tracegraph.user_source import lines_of


def plan_diagram(plan: Plan) -> Diagram:
    """The picture of a Plan. The names of kernels are without that of the Plan in front."""
    _, _, summary = plan_line(plan).partition(": ")
    return Diagram(f"plan {plan.name}", summary, _Drawing(plan).region("", plan.launch_graph))


def profile_diagram(profile: Profile) -> Diagram:
    """The picture of the Plan that was measured, with the times of its nodes."""
    plan = profile.plan
    if plan is None:
        return Diagram(f"profile of {profile.name}", "", DiagramRegion("", (), ()))
    times: dict[int, list[NodeTime]] = {}
    for each in profile.nodes:
        times.setdefault(each.number, []).append(each)
    drawing = _Drawing(plan, _Measured(plan, times, profile.seconds or 1.0))
    title, _, _ = str(profile).partition("\n")
    return Diagram(
        f"profile of {profile.name}",
        title.partition(": ")[2],
        drawing.region("", plan.launch_graph),
    )


class _Measured:
    """The times of nodes, asked for in the order in which a Plan has them.

    Copies of a body are the same nodes, so that only the order tells them apart.
    """

    def __init__(self, plan: Plan, times: Mapping[int, Sequence[NodeTime]], whole: float) -> None:
        work = [node for node in launched(plan.launch_graph) if not _is_of_launch(node)]
        self._numbers: dict[Node, list[int]] = {}
        for number, node in reversed([*enumerate(work)]):
            self._numbers.setdefault(node, []).append(number)
        self._times, self._whole = times, whole

    def next(self, node: Node) -> tuple[Sequence[NodeTime], float, float]:
        """The times of a node, their sum, and its share of all."""
        numbers = self._numbers.get(node)
        if not numbers:
            return (), 0.0, 0.0
        found = self._times.get(numbers.pop(), ())
        seconds = sum([each.seconds for each in found])
        return found, seconds, seconds / self._whole


def _is_of_launch(node: Node) -> bool:
    """Whether it is not in the Plan's own graph, which is measured."""
    return isinstance(node, LaunchKernelNode | AllocationNode | FreeNode)


def node_diagram(node: Node) -> Diagram:
    """The picture of a node, bodies included."""
    return Diagram(
        node.title, lines_of(node.sources), DiagramRegion("", (_Drawing().box(node),), ())
    )


@dataclass(frozen=True, slots=True)
class _Drawing:
    """Draws the nodes of a Plan, or of none."""

    plan: Plan | None = None
    measured: _Measured | None = None

    def region(self, label: str, graph: Graph, around: Construct | None = None) -> DiagramRegion:
        """A graph, or a body of a loop or branch; copies of an unrolled loop's body are one box."""
        boxes = tuple([self.box(node) for node in graph.nodes])
        region = DiagramRegion(label, boxes, tuple([Edge(i, j) for i, j in sorted(graph.edges)]))
        copies = list(_copies(boxes, around))
        inside = {number for group in copies for number in group.members}
        unrolled = [group for group in _unrolled(graph) if inside.isdisjoint(group.members)]
        return with_groups(region, [*copies, *unrolled])

    def box(self, node: Node) -> Box:
        """A node, bodies included."""
        title = node.title
        if self.plan is not None:
            title = title.replace(f"{self.plan.name}_", "", 1)
        _, _, caption = node.noun.partition(" ")
        lines = [*_schedules(node), *node.contents]
        lines += [self.becomes(node)] if self.becomes(node) else []
        lines += [lines_of(node.sources)] if node.sources else []
        bodies = zip(node.body_labels, node.bodies, strict=True)
        times, seconds, share = self.measured.next(node) if self.measured else ((), 0.0, 0.0)
        if times:
            lines += [f"{seconds_text(seconds)}, {share:.0%} of all"]
        return Box(
            title,
            tuple(lines),
            "" if caption in title else caption,
            node.tone,
            "\n".join((title, *lines[:-1], source_text(node.sources))) if node.sources else title,
            regions=tuple([self.region(name, body, node.construct) for name, body in bodies]),
            facts=lambda: {**_time_facts(times), **self.facts(node)},
            sources=node.sources,
            seconds=seconds if times else None,
            share=share,
        )

    def becomes(self, node: Node) -> str:
        """The nodes of the CUDA graph that a node becomes, if those are several."""
        return "" if self.plan is None else becomes(self.plan, node)

    def facts(self, node: Node) -> Facts:
        """What a side panel says of a node."""
        whys = [known.why for known, _ in _constructs(node)]
        points, nbytes, operations = node.weight
        said = {
            "node": node.title,
            "line": source_text(node.sources),
            "schedule": "\n".join(_schedules(node)),
            "why": "\n".join(filter(None, dict.fromkeys([*whys, node.purpose]))),
            "nodes of the CUDA graph": self.becomes(node),
            "reads": _listed(node.reads),
            "writes": _listed(node.writes),
            "bytes read and written": f"{nbytes:,}" if nbytes else "",
            "points": f"{points:,}" if points else "",
            "floating-point operations": f"{operations:,}" if operations else "",
            "text": node.text,
        }
        return {name: text for name, text in said.items() if text}


def _time_facts(times: Sequence[NodeTime]) -> Facts:
    """What was measured of a node; of each nest, if that was."""
    lines = []
    for each in times:
        least = "" if each.least is None else f", at least {seconds_text(each.least)}"
        part = "" if each.part is None else f", {each.part:.2f} of the limit"
        name = f"{each.title}: " if len(times) > 1 else ""
        runs = f"{each.runs:,.4g} runs" if each.runs != 1 else "1 run"
        lines.append(f"{name}{seconds_text(each.seconds)} in {runs}{least}{part}")
    return {"measured": "\n".join(lines)} if lines else {}


def _unrolled(graph: Graph) -> Iterator[BoxGroup]:
    """The nodes of each loop that is unrolled as a whole."""
    members: dict[Inlined, list[int]] = {}
    for number, node in enumerate(graph.nodes):
        outer = {path[0].inlined if path else None for path in node.within}
        if len(outer) == 1:
            (inlined,) = outer
            if inlined is not None and inlined.is_loop:
                members.setdefault(inlined, []).append(number)
    for inlined, numbers in members.items():
        known = inlined.construct
        if len(numbers) > 1:
            times = "" if known.steps is None else f" ×{known.steps}"
            said = _said(known, known.schedule.replace("_", " "))
            nodes = [graph.nodes[number] for number in numbers]
            yield BoxGroup(tuple(numbers), _group(f"{known.name}{times}", said, nodes))


def _copies(boxes: Sequence[Box], around: Construct | None) -> Iterator[BoxGroup]:
    """The copies of a body of which one iteration makes several steps."""
    if around is None or around.copies < 2:
        return
    found = repeated([(box.title, box.sources) for box in boxes])
    if found is not None:
        start, period, copies = found
        several = tuple(range(start, start + period * copies))
        said = f"{copies} copies of {period} node{'s' if period > 1 else ''}"
        yield BoxGroup(several, _group(f"body ×{copies}", said, boxes[start : start + period]))


def _group(title: str, said: str, members: Sequence[Node | Box]) -> Box:
    """The box of an unrolled loop, or of the copies of a body; `members` are those it names."""
    sources = tuple(dict.fromkeys([source for each in members for source in each.sources]))
    named = dict.fromkeys([each.title for each in members])
    lines = tuple(filter(None, (said, *named, lines_of(sources))))
    tooltip = "\n".join((title, said, source_text(sources)))
    return Box(title, lines, "copies", "loop", tooltip, sources=sources)


def _schedules(node: Node) -> Sequence[str]:
    """The loops and branches that a node runs or has work of: ``"scan: WHILE node, 100 steps"``."""
    return [_said(known, schedule) for known, schedule in _constructs(node)]


def _constructs(node: Node) -> Sequence[tuple[Construct, str]]:
    """The same, with their schedules; those of a kernel are in its phases."""
    phases = [phase for body in node.bodies for phase in body.nodes] if node.is_kernel else []
    known = [
        (member.construct, member.kind)
        for member in (node, *phases)
        if member.construct is not None
    ]
    return [
        *[(construct, schedule_text(construct, kind)) for construct, kind in known],
        *[
            (member.construct, member.construct.schedule.replace("_", " "))
            for member in _inlined(node)
        ],
    ]


def _said(known: Construct, schedule: str) -> str:
    steps = "" if known.steps is None else f", {known.steps} steps"
    bound = "" if known.max_steps is None else f", at most {known.max_steps} steps"
    return f"{known.name}: {schedule}{steps}{bound}"


def _inlined(node: Node) -> Sequence[Inlined]:
    """The loops and branches without a node of their own that this one has work of."""
    return list(dict.fromkeys([part.inlined for path in node.within for part in path]))


def _listed(buffers: frozenset[Buffer]) -> str:
    ordered = sorted(buffers, key=lambda buffer: (buffer.space, buffer.number))
    return "\n".join([f"{buffer}: {buffer.type}" for buffer in ordered])
