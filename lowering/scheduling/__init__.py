"""Scheduling: how each loop and branch runs, before anything is fused.

Schedules are records: a name, an obstacle, a cost, and how to apply it. The cheapest one that is
possible is applied to the block, in place; the user can pin one. May import `draft/`, `plan/`,
`planning/` and `allocation/` (what may share memory).

    schedule, records                      the choice; what a schedule is
    loop_schedules, branch_schedules       the records of each construct
    complete_unrolling                     short loops written out in the Program
    unrolling, buffer_rotation, induction  copies of a body; multi-buffering; induction variables
    predication                            kernels that read a flag instead of a conditional node
    cost_model, overrides                  estimates of nodes; schedules that tests force
"""
