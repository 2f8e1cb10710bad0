"""Dispatching."""
