"""Groups: boxes of a region that become one box, which a click opens."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import replace
from heapq import heapify, heappop, heappush
from itertools import pairwise

from tracegraph.generated.dataclass import dataclass
from tracegraph.inspection.diagram import Box, DiagramRegion, Edge, boxes_in, seconds_text


@dataclass(frozen=True, slots=True)
class BoxGroup:
    """Boxes by their positions, and the box for all of them, which gets their region.

    `inside` changes that region. With `one_port`, all values leave by one port.
    """

    members: tuple[int, ...]
    box: Box
    inside: Callable[[DiagramRegion], DiagramRegion] = lambda region: region
    one_port: bool = False


def with_groups(region: DiagramRegion, groups: Sequence[BoxGroup]) -> DiagramRegion:
    """The region with one box for each group; groups have no member in common.

    If a group were before and after another or what is in none, only members that follow one
    another are grouped.
    """
    if not groups:
        return region
    whole = _grouped(region, groups)
    if whole is not None:
        return whole
    runs = [replace(g, members=run) for g in groups for run in _runs(g.members) if len(run) > 1]
    found = _grouped(region, runs)
    return region if found is None else found


def _grouped(region: DiagramRegion, groups: Sequence[BoxGroup]) -> DiagramRegion | None:
    """The region with one box for each group; None if there were a cycle."""
    owners = {member: number for number, group in enumerate(groups) for member in group.members}
    alone = [number for number in range(len(region.boxes)) if number not in owners]
    first = [*[min(group.members) for group in groups], *alone]  # old positions of the new boxes
    at = {**owners, **{old: len(groups) + new for new, old in enumerate(alone)}}
    ports = _ports(region, owners, {n for n, group in enumerate(groups) if group.one_port})
    links: dict[tuple[int, int, int], None] = {}
    for source, target, port in map(_ends, region.edges):
        if at[source] != at[target]:
            links[at[source], at[target], ports.get((source, port), port)] = None
    order = _topological(first, [(source, target) for source, target, _ in links])
    if len(order) < len(first):
        return None
    place = {new: number for number, new in enumerate(order)}
    made = [_folded(region, group, ports) for group in groups]
    made += [region.boxes[number] for number in alone]
    edges = [Edge(place[source], place[target], port) for source, target, port in links]
    return replace(region, boxes=tuple([made[new] for new in order]), edges=tuple(edges))


def _folded(region: DiagramRegion, group: BoxGroup, ports: dict[tuple[int, int], int]) -> Box:
    """The box of a group, with the members inside."""
    members = sorted(group.members)
    inside = {old: new for new, old in enumerate(members)}
    edges = [
        Edge(inside[edge.source], inside[edge.target], edge.port)
        for edge in region.edges
        if edge.source in inside and edge.target in inside
    ]
    inner = DiagramRegion("", tuple([region.boxes[old] for old in members]), tuple(edges))
    measured = [box for box in boxes_in(inner) if box.seconds is not None and not box.is_folded]
    share = sum([box.share for box in measured])
    took = sum([box.seconds or 0.0 for box in measured]) if measured else None
    said = () if took is None else (f"{seconds_text(took)}, {share:.0%} of all",)
    box = replace(
        group.box,
        lines=(*group.box.lines, *said),
        regions=(group.inside(inner),),
        is_folded=True,
        seconds=took,
        share=share,
    )
    if group.one_port:
        return box
    out = sorted((new, old, port) for (old, port), new in ports.items() if old in inside)
    named = [region.boxes[old].values[port : port + 1] for _, old, port in out]
    values = tuple([names[0] if names else "" for names in named])
    return replace(box, values=values)


def _ports(
    region: DiagramRegion, owners: dict[int, int], joined: set[int]
) -> dict[tuple[int, int], int]:
    """The port of its group for each port of a member that leads out of that."""
    found: dict[tuple[int, int], int] = {}
    counts: dict[int, int] = {}
    for source, target, port in map(_ends, region.edges):
        owner = owners.get(source)
        if owner is None or owner == owners.get(target) or (source, port) in found:
            continue
        found[source, port] = 0 if owner in joined else counts.get(owner, 0)
        counts[owner] = found[source, port] + 1
    return found


def _ends(edge: Edge) -> tuple[int, int, int]:
    return edge.source, edge.target, edge.port


def _runs(members: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Positions that follow one another."""
    ordered = sorted(members)
    breaks = [k + 1 for k, (one, other) in enumerate(pairwise(ordered)) if other != one + 1]
    for start, end in pairwise((0, *breaks, len(ordered))):
        yield tuple(ordered[start:end])


def _topological(first: Sequence[int], links: Sequence[tuple[int, int]]) -> list[int]:
    """An order in which links lead onwards: of what may come next, the earliest before. What is on
    a cycle, or behind one, is left out.
    """
    after: dict[int, list[int]] = {}
    waiting = [0] * len(first)
    for source, target in set(links):
        after.setdefault(source, []).append(target)
        waiting[target] += 1
    ready = [(first[number], number) for number, count in enumerate(waiting) if not count]
    heapify(ready)
    order = []
    while ready:
        _, number = heappop(ready)
        order.append(number)
        for target in after.get(number, ()):
            waiting[target] -= 1
            if not waiting[target]:
                heappush(ready, (first[target], target))
    return order


def alike_runs(
    count: int, kind: Callable[[int], Hashable | None], least: int, most: int
) -> Iterator[tuple[int, ...]]:
    """Runs of `least` to `most` positions that follow one another and are of one kind, not None."""
    run: list[int] = []
    for number in range(count + 1):
        here = kind(number) if number < count else None
        if run and (here is None or here != kind(run[0]) or len(run) == most):
            if len(run) >= least:
                yield tuple(run)
            run = []
        if here is not None:
            run.append(number)


LONGEST_PERIOD = 64
"""The most keys that are found to repeat together."""


def repeated(keys: Sequence[Hashable]) -> tuple[int, int, int] | None:
    """Where keys begin to repeat, after how many they do, and how often they are there.

    >>> repeated(["load", "a", "b", "a", "b", "a", "b", "copy"])
    (1, 2, 3)
    """
    best: tuple[int, int, int] | None = None
    for period in range(1, min(len(keys) // 2, LONGEST_PERIOD) + 1):
        start = length = 0
        for number in range(period, len(keys)):
            length = length + 1 if keys[number] == keys[number - period] else 0
            copies = 1 + length // period
            if copies > 1 and (best is None or copies * period > best[1] * best[2]):
                start = number - length + 1 - period
                best = (start, period, copies)
    return best
