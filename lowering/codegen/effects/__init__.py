"""Code of effects: what a kernel reports to the host.

Hosts read these records in `lowering.cuda.effects`.

arguments                   what both append to a ring
call_nests, call_records    calls of Python, and the layout of the frames that they append
print_nests, print_records  prints, likewise
signals                     conditions, checks and counters of progress
"""
