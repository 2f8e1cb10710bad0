"""Benchmarks against other array libraries, run by hand: ``python -m tests.bench --help``.

A row is one piece of work (`row.py`), which every library does as its own users would write it.
All contestants of a row run in one process, in turns, on the same inputs, and their results are
compared before and after they are timed.
"""
