"""Legalization."""
