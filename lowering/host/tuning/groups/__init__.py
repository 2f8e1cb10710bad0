"""Passes on groups of nests: how their loops are split, ordered and shared."""
