"""Targets: what planning knows of a device before it plans.

It imports no other part of the Plan.

target       costs, limits and policies of a backend
hardware     sizes that all GPUs share
features     what a device's graphs can do, and how to declare a feature missing
overrides    choices that tests and users force
scope        the threads of a persistent kernel
"""
