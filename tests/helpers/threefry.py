"""Threefry with 20 rounds, by its definition, in Python's integers."""

from __future__ import annotations

MASK = 0xFFFFFFFF


def threefry(key: tuple[int, int], counter: int) -> tuple[int, int]:
    """The two words of random bits for a key and a counter."""
    rotations = ((13, 15, 26, 6), (17, 29, 16, 24))
    keys = (*key, key[0] ^ key[1] ^ 0x1BD11BDA)
    x, y = (counter >> 32) + keys[0] & MASK, (counter & MASK) + keys[1] & MASK
    for part in range(5):
        for bits in rotations[part % 2]:
            x = x + y & MASK
            y = ((y << bits | y >> 32 - bits) & MASK) ^ x
        x = x + keys[(part + 1) % 3] & MASK
        y = y + keys[(part + 2) % 3] + part + 1 & MASK
    return x, y
