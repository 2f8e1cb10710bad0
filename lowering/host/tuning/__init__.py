"""Tuning: passes that make the host's NumPy calls cheaper and change no result.

They take and return the plain data of `lowering.host`: groups of nests, expressions, programs of
instructions. `passes.PASSES` lists them by kind with what each does; nothing outside this folder
names another of its files. With native code for nests, the whole folder can go. May import:
lowering.host, lowering.plan, tracegraph's IR.

Limits were measured with NumPy 2.4.6 on an AMD EPYC with AVX-512. A wrong one costs time, never a
result.
"""
