"""Legalization: a Plan rewritten for what a device's graphs cannot do.

A Plan and the `Features` of a device come in; a Plan that needs no missing feature goes out. It may
import `lowering.plan` and knows no driver: probes are the backend's.

    legalize       which rewrites a Plan needs
    pointer_table  reading addresses through a table in device memory
"""
