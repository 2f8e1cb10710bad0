"""Python code that is written and compiled while a program runs.

functions   functions for one case, with constants at hand
dataclass   methods of dataclasses, when they are first used
"""
