"""Argument paths as names: `params['layers'][0]['w']`, shortened, and groups of those alike."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence

from tracegraph.generated.dataclass import dataclass

LONGEST_NAME = 28
"""Characters of a path that is a name as it is."""

MOST_LEAVES = 8
"""How many arrays of one argument are listed one by one."""

_STEP = r"\[(?:'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|[^\[\]'\"])*\]|\.\w+"
_INDEX = r"\[(\d+)\]"
# Patterns are compiled when they are used, which takes a millisecond.


def short_names(paths: Sequence[str]) -> list[str]:
    """Each path as a name; of a long one the root and the last steps, if no other has these.

    >>> short_names(["x", "params['encoder']['layers'][0]['attention']['w']"])
    ['x', "params…[0]['attention']['w']"]
    """
    short = [_shortened(path) for path in paths]
    counts = Counter(short)
    return [s if counts[s] == 1 else p for s, p in zip(short, paths, strict=True)]


def _shortened(path: str) -> str:
    path = " ".join(path.split())
    if len(path) <= LONGEST_NAME:
        return path
    first = root(path)
    steps = re.findall(_STEP, path[len(first) :])
    kept = ""
    while steps and len(first) + 1 + len(steps[-1]) + len(kept) <= LONGEST_NAME:
        kept = steps.pop() + kept
    return f"{first}…{kept}" if kept else path


def root(path: str) -> str:
    """The parameter of the function that a path begins with."""
    found = re.match(r"\w+", path)
    return path if found is None else found[0]


@dataclass(frozen=True, slots=True)
class PathGroup:
    """Paths that differ in their indices alone, by their positions, and a text for all of them.

    `key` is what they have in common besides.
    """

    text: str
    members: tuple[int, ...]
    key: Hashable


def grouped(paths: Sequence[str], keys: Sequence[Hashable]) -> list[PathGroup]:
    """Paths with equal keys that differ in indices alone, together.

    >>> paths = ["p[0]['w']", "p[0]['b']", "p[1]['w']", "p[1]['b']", "x"]
    >>> [group.text for group in grouped(paths, ["m", "v", "m", "v", "v"])]
    ["p[0:2]['w']", "p[0:2]['b']", 'x']
    """
    found: dict[Hashable, list[int]] = {}
    for number, (path, key) in enumerate(zip(paths, keys, strict=True)):
        found.setdefault((re.sub(_INDEX, "[]", path), key), []).append(number)
    return [
        PathGroup(_joined([paths[k] for k in members]), tuple(members), keys[members[0]])
        for members in found.values()
    ]


def _joined(paths: Sequence[str]) -> str:
    """One text for paths that differ in indices: slices for them, where they are all there."""
    if len(paths) == 1:
        return paths[0]
    indices = [*zip(*[map(int, re.findall(_INDEX, path)) for path in paths], strict=True)]
    ranges = [(min(each), max(each) + 1) for each in indices]
    count = 1
    for first, end in ranges:
        count *= end - first
    is_whole = count == len(set(paths))
    pieces = iter(ranges)

    def piece(_: re.Match[str]) -> str:
        first, end = next(pieces)
        if end - first == 1:
            return f"[{first}]"
        return f"[{first}:{end}]" if is_whole else "[…]"

    return re.sub(_INDEX, piece, paths[0])


def large_roots(paths: Sequence[str]) -> dict[str, list[int]]:
    """Arguments with more than `MOST_LEAVES` arrays, by name, and the positions of these."""
    found: dict[str, list[int]] = {}
    for number, path in enumerate(paths):
        found.setdefault(root(path), []).append(number)
    return {name: members for name, members in found.items() if len(members) > MOST_LEAVES}


def listed(groups: Sequence[PathGroup]) -> Iterator[str]:
    """A line for each group: ``"p[0:2]['w']: 2 of f64[8]"``; of very many, the first ones."""
    for group in groups[:MOST_LEAVES]:
        count = len(group.members)
        yield f"{group.text}: {f'{count} of ' if count > 1 else ''}{group.key}"
    if len(groups) > MOST_LEAVES:
        yield f"… {len(groups) - MOST_LEAVES} more"
