"""Passes on programs of instructions: layouts, blocks and stores of temporaries."""
