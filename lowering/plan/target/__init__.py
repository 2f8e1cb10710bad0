"""Targets: what planning knows of a device before it plans.

It imports no other part of the Plan.

target       costs, limits and policies of a backend
hardware     sizes that all GPUs share
overrides    choices that tests and users force
scope        the threads of a persistent kernel
"""
