"""Sizes that all supported NVIDIA GPUs share (sm_80 and later), and the driver's alignment.

Estimates are made for an H100 or H200, whose number of multiprocessors is here, too.
"""

WARP = 32
"""Threads that execute together."""

PARAMETER_BYTES = 8
"""Each parameter of our kernels, and an address."""

WORD_BYTES = 4
"""A register, and a shared memory bank. A warp that accesses less per thread wastes bandwidth."""

VECTOR_BYTES = 16
"""The widest access of one thread."""

SECTOR_BYTES = 32
"""The unit in which L2 and DRAM transfer data."""

SHARED_BYTES = 48 << 10
"""Shared memory that a block gets without opting in to more."""

REGISTERS = 1 << 16
"""Registers of a multiprocessor."""

REGISTER_UNIT = 8
"""Granularity in which registers are allocated to a thread."""

MAX_REGISTERS = 255
"""Registers of a thread."""

MAX_BLOCK_THREADS = 1024
"""Threads of a block."""

ALIGNMENT = 256
"""Alignment in bytes of the driver's allocations, and of each buffer within one."""

MULTIPROCESSORS = 132
"""Multiprocessors of an H100 or H200. A launch asks the driver for the number of its device."""
