"""Benchmarks against other array libraries, run by hand: ``python -m benchmarks --help``.

A row is one piece of work (`row.py`), which every library does as its own users would write it.
All contestants of a row take turns on the same inputs, in one process but for those whose settings
need one of their own (`elsewhere.py`), and their results are compared before and after timing.
"""
