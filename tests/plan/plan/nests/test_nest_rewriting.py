"""What is known of a nest whose buffers were renamed is what would be found out anew."""

from __future__ import annotations

import pytest

import tracegraph
from lowering.lower import lower
from lowering.plan.nests.analysis import analyze
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.kernel import Nest, Predicate
from lowering.plan.nests.rewriting import rename_in_nest
from lowering.plan.nodes import KernelNode, walk
from lowering.scheduling.predication import predicated
from tests.corpus import CASES
from tracegraph import ArrayType
from tracegraph.ir.record import replace

FLAG = Buffer("scratch", 10_000, ArrayType("bool"))


def nests_of(name: str) -> list[Nest]:
    case = CASES[name]
    program = tracegraph.jit(case.function, device="host").trace(*case.arguments).optimized
    kernels = [n.kernel for n in walk(lower(program).graph) if isinstance(n, KernelNode)]
    return [nest for kernel in kernels for nest in kernel.nests]


def assert_known(nest: Nest) -> None:
    known, fresh = analyze(nest), analyze(replace(nest))
    assert known is not fresh
    for field in ("roots", "expressions", "loads", "accumulated", "reads", "writes"):
        assert getattr(known, field) == getattr(fresh, field)


@pytest.mark.parametrize("name", CASES)
def test_renamed_nests_are_known(name: str) -> None:
    for nest in nests_of(name):
        touched = sorted(analyze(nest).reads | analyze(nest).writes, key=str)
        names = {b: Buffer("scratch", 1000 + n, b.type) for n, b in enumerate(touched)}
        assert_known(rename_in_nest(nest, names))
        swapped = dict(zip(touched, [*touched[1:], *touched[:1]], strict=True))
        same_type = {b: other for b, other in swapped.items() if b.type == other.type}
        assert_known(rename_in_nest(nest, same_type))
        assert_known(predicated(nest, Predicate(FLAG, True)))
