"""Scans that are linear recurrences, in parallel over chunks of their steps.

intervals        between which bounds values are, whatever the arguments
affine_carries   how a step changes a carry: h = a h + b
chunked_scans    the program in place of such a scan
"""
