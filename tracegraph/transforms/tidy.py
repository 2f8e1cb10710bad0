"""Optimization of what transforms read and record: less to derive, and fewer values kept."""

from __future__ import annotations

from tracegraph.ir.program import Program, Region


def tidied(region: Region) -> Region:
    """The region with all passes applied; its parameters stay."""
    return tidied_program(Program("region", region)).body


def pruned(region: Region) -> Region:
    """The region without dead code: other passes reach it where it stands."""
    from tracegraph.passes import dce

    return dce(Program("region", region)).body


def tidied_program(program: Program) -> Program:
    """The program with all passes applied, lanes of vmap that run for nothing being isolated."""
    from tracegraph.passes import (  # when first used: importing them takes 8 ms
        optimize,
        with_dead_lanes_isolated,
    )

    return optimize(with_dead_lanes_isolated(program), is_traced=True)
