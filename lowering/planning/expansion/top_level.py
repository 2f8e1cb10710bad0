"""Ops that only the top level of a program may have, because bodies cannot hold their nodes."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from tracegraph.ir.program import Eqn, Program, walk


def in_bodies(program: Program, ops: Collection[str]) -> Iterator[tuple[Eqn, str]]:
    """The equations of these ops in branches and loops, and the outermost construct of each."""
    for outer in program.body.eqns:
        for region in outer.regions:
            for eqn in walk(region):
                if eqn.op.name in ops:
                    yield eqn, outer.hints.construct or outer.op.name
