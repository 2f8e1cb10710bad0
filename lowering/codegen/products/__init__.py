"""Products by tiles: each block computes a tile of outputs from tiles of both factors.

product_geometry    the size of tiles, and how many blocks share a sum
product_tiles       the text of a block
tile_sides          the factors, and the order of their axes
separated           indices, by what they depend on
tile_loads          from memory to shared memory
tile_sums           products, by threads or warps, and partial sums of blocks
"""
