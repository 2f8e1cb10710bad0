"""Concurrency."""
