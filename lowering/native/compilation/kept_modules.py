"""Modules of Plans that were written before: with them, nothing is written again."""

from __future__ import annotations

from hashlib import sha256
from time import perf_counter

from lowering.disk_cache.location import program_store
from lowering.disk_cache.pickles import keep, kept
from lowering.native.compilation.compiler import compiler_identity
from lowering.native.module import NativeModules, modules_of
from lowering.plan.plan import Plan
from tracegraph.ir.record import replace


def modules_kept_or_made(plan: Plan) -> tuple[Plan, NativeModules]:
    """The modules of a Plan, and the Plan whose buffers they name: the same, or its equal."""
    origin, store = plan.origin, program_store()
    if origin is None or store is None:
        return plan, modules_of(plan)
    text = "\0".join(("native", *compiler_identity("full")))
    key = sha256(origin.key + text.encode()).digest()
    found: tuple[Plan, NativeModules] | None = kept(store, key, origin)
    if found is not None:
        return replace(found[0], name=plan.name).of(origin), found[1]
    start = perf_counter()
    modules = modules_of(plan)
    keep(store, key, origin, (plan, modules), perf_counter() - start)
    return plan, modules
