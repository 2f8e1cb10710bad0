"""Tables of what became of the calls."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from .calls import Call, Recording
from .replaying import DESIGN, OUTCOMES, SAME, SKIPPED, STATIC, Outcome

Replayed = Sequence[tuple[Call, Outcome]]


def summary(recording: Recording, replayed: Replayed) -> str:
    """Counts by group of calls, and what was left out."""
    lines = [_row("group", OUTCOMES), *_rows(replayed, lambda call: call.group)]
    lines.append(_row("all", _counts(o for _, o in replayed)))
    lines.append("")
    lines.append("by design, static or skipped, with the reason:")
    reasons = Counter((o.kind, o.detail) for _, o in replayed if o.kind in (DESIGN, SKIPPED))
    lines += [f"  {n:6} {kind}: {reason}" for (kind, reason), n in reasons.most_common()]
    lines.append(f"not recorded, of the tests of NumPy {recording.numpy_version}:")
    lines += [f"  {n:6} {why}" for why, n in Counter(recording.left_out).most_common()]
    return "\n".join(lines)


def by_function(replayed: Replayed) -> str:
    """Counts by function, for those of which some call is not as in NumPy."""
    found: defaultdict[str, list[tuple[Call, Outcome]]] = defaultdict(list)
    for call, outcome in replayed:
        found[call.target].append((call, outcome))
    wrong = {
        name: pairs
        for name, pairs in found.items()
        if any(o.kind not in (SAME, STATIC, SKIPPED, "by value", DESIGN) for _, o in pairs)
    }
    ordered = sorted(wrong, key=lambda name: -_wrong(wrong[name]))
    rows = [_row(name, _counts(o for _, o in wrong[name])) for name in ordered]
    return "\n".join([_row("function", OUTCOMES), *rows])


def shown(replayed: Replayed, kinds: Iterable[str], number: int) -> str:
    """Some calls of each function and detail that ended in one of these ways."""
    kinds, lines = set(kinds), []
    seen: Counter[tuple[str, str]] = Counter()
    for call, outcome in replayed:
        key = (call.target, outcome.kind)
        if outcome.kind in kinds and seen[key] < number:
            seen[key] += 1
            lines += [f"{outcome.kind}: {written(call)}", f"    {outcome.detail}"]
    return "\n".join(lines)


def written(call: Call) -> str:
    """A call as a line of Python."""
    args, kwargs = call.arguments
    parts = [_written(a) for a in args] + [f"{k}={_written(v)}" for k, v in kwargs.items()]
    return f"{call.target}({', '.join(parts)})"


def _written(value: object) -> str:
    if isinstance(value, (list, tuple)):
        inside = ", ".join(_written(v) for v in value)
        return f"[{inside}]" if isinstance(value, list) else f"({inside},)"
    if isinstance(value, (np.ndarray, np.generic)):
        text = repr(value.tolist()) if value.size <= 40 else f"shape {value.shape}"
        return f"{value.dtype}({text})"
    return repr(value)


def _rows(replayed: Replayed, group_of: object) -> list[str]:
    found: defaultdict[str, list[Outcome]] = defaultdict(list)
    for call, outcome in replayed:
        found[group_of(call)].append(outcome)  # type: ignore[operator]
    return [_row(name, _counts(outcomes)) for name, outcomes in sorted(found.items())]


def _counts(outcomes: Iterable[Outcome]) -> Sequence[object]:
    counts: Mapping[str, int] = Counter(o.kind for o in outcomes)
    return [counts.get(kind, 0) for kind in OUTCOMES]


def _wrong(pairs: Replayed) -> int:
    return sum(o.kind in ("differs", "accepted", "refused", "raw") for _, o in pairs)


def _row(name: str, cells: Iterable[object]) -> str:
    return f"{name:32}" + "".join(f"{cell!s:>11}" for cell in cells)
