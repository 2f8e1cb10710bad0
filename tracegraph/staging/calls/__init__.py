"""Calls: how arguments become what an executable takes, and results what the user gets.

Nothing here builds anything.

signature, argument_layout    keys of calls; how leaves are nested
call_tracing                  a call is traced for its types
fast_call                     repeated calls
donated, results              donated arguments; results as Arrays in a tree
last_call, clock              what the last call did, and when
random_draws                  draws of NumPy's generator while a function was traced
finite_results, ranges        checks of results for NaNs; NVTX ranges
"""
