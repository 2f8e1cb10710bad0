"""Plans from disk, or made and kept."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from hashlib import sha256
from time import perf_counter

from lowering.disk_cache.keys import Parts, origin_of
from lowering.disk_cache.location import program_store
from lowering.disk_cache.pickles import keep, kept, plan_name
from lowering.disk_cache.store import CodeStore
from lowering.plan.plan import Origin, Plan
from lowering.plan.target.target import Target
from tracegraph.cache import settings
from tracegraph.ir.program import Program
from tracegraph.ir.record import replace
from tracegraph.staging.scratch import Scratch


def kept_or_made(
    program: Program,
    target: Target,
    donated: Sequence[int],
    scratch: Scratch,
    make: Callable[[], Plan],
) -> Plan:
    """The Plan of a program for a target: that on disk, or what `make` gives, which is kept."""
    store = program_store()
    found = None if store is None else origin_of(program, target, donated, scratch)
    if store is None or found is None:
        return make()
    origin, parts = found
    plan: Plan | None = kept(store, origin.key, origin)
    if plan is None:
        settings.counts.miss(program.name, _reasons(store, origin, parts))
        start = perf_counter()
        plan = make()
        keep(store, origin.key, origin, plan, perf_counter() - start)
        _note(store, origin, parts)
    return replace(plan, name=plan_name(program.name)).of(origin)


def _function_key(origin: Origin) -> bytes:
    """The key of what is noted of the last program of a function."""
    lines = [(s.file, s.function) for s in origin.sources[:1]]
    return sha256(repr((origin.name, lines)).encode()).digest()


def _reasons(store: CodeStore, origin: Origin, parts: Parts) -> list[str]:
    """What differs from the last program of the same function."""
    entry = store.get(_function_key(origin))
    if entry is None:
        return ["there was no program of this function"]
    try:
        last = json.loads(entry)
    except ValueError:
        return ["what was noted of it cannot be read"]
    now = _digests(parts)
    found = [f"{name} differ from before" for name in parts if last.get(name) != now[name]]
    return found or ["it was deleted, or could not be kept"]


def _note(store: CodeStore, origin: Origin, parts: Parts) -> None:
    with suppress(OSError):
        store.put(_function_key(origin), json.dumps(_digests(parts)).encode())


def _digests(parts: Parts) -> dict[str, str]:
    return {name: sha256(text.encode()).hexdigest() for name, text in parts.items()}
