"""Scans: running folds along an axis.

A ScanNest with its geometry comes in, and statements in a SourceWriter go out. `scan_nests` chooses
between a thread for each line, a block for each line, and several blocks with look-back;
`scan_tiles` is the scan of one tile by one block.
"""
