"""Scheduling: how each loop and branch runs, before anything is fused.

Schedules are records: a name, an obstacle, a cost, and how to apply it. The cheapest one that is
possible is applied to the block, in place; the user can pin one. May import `draft/`, `plan/`,
`planning/` and `allocation/` (what may share memory).

    schedule, schedule_records             the choice; what a schedule is
    loop_schedules, branch_schedules       the records of each construct
    unrolling, buffer_rotation, induction  copies of a body; multi-buffering; induction variables
    one_kernel, persistent_time            a loop in one kernel; how long its phases take
    per_lane                               a thread for each lane of a loop
    predication                            kernels that read a flag instead of a conditional node
    cost_model                             estimates of nodes
"""
