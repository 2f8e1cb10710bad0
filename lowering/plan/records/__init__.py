"""Layouts of what running kernels send to the host: kernels write them, and the host reads them.

print_records   a print
call_records    a call of a function of the host, and its answer
"""
