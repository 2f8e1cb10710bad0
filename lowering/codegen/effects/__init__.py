"""Code of effects: what a kernel reports to the host.

Hosts read these records in `lowering.cuda.effects`.

arguments                   what both append to a ring
call_nests   calls of Python
print_nests  prints
signals                     conditions, checks and counters of progress
"""
