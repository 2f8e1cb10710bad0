"""Expansion."""
