"""What planning needs to know of native code on the CPU."""

from __future__ import annotations

from math import inf

from lowering.algorithms import ALGORITHMS
from lowering.plan.target.target import ContractionPolicy, Costs, FusionPolicy, Target
from tracegraph.passes import Motion

TARGET = Target(
    Costs(
        kernel=0.01,
        fold=0.0,
        kernel_in_branch=0.01,
        check=0.001,
        branch=0.0,
        fork=0.0,
        skipped_sibling=0.001,
        loop_iteration=0.0,
        update=0.0,
        updates_libraries=True,
        block=0.0,
        megabyte=100.0,
        gigaflop=1e4,
        recompute_limit=4,
        expansion=2,
        gather_penalty=((inf, 0),),
        calls=0,
    ),
    fusion=FusionPolicy(),
    contractions=ContractionPolicy(small_extent=16, small_products=24**3, most_products=1 << 40),
    factorizations=frozenset(ALGORITHMS),
    sort_scratch=False,
    motion=Motion(cheap=True, in_vain=1 << 10, guards=True),
)
"""Loops and branches are jumps, so that their nodes are free. A further nest costs a loop. Ops that
cost little are computed again rather than stored. A call of BLAS takes as long as a product of
about 24 x 24 matrices by loops."""
