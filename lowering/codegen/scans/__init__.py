"""Scans: running folds along an axis.

In comes a ScanNest with its geometry, out go statements in a SourceWriter. `scans` chooses between
a thread for each line, a block for each line, and several blocks with look-back; `scan_tiles` is
the scan of one tile by one block.
"""
