"""Products by tiles: each block computes a tile of outputs from tiles of both factors.

product_geometry    the size of tiles, and how many blocks share a sum
product_tiles       the text of a block
"""
