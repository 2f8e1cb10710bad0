"""Nests."""
