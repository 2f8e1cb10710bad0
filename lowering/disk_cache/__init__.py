"""Compiled code on disk, for a GPU and for a CPU.

    location         the folder, by the environment variable TRACEGRAPH_CACHE_DIR
    private_folder   whether the folder can be trusted
    store            files by keys, checked when they are read, bounded in size

It knows no compiler: a key says all that the code was made from.
"""
