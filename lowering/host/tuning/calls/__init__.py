"""Passes on single calls: their forms, and where their results are."""
