"""Programs on several devices: ``python -m benchmarks.sharded --devices 2``, by hand, on GPUs.

Each way to run them has a process of its own: tracegraph on one device and on all, and JAX's
``shard_map`` on all, as it is and with command buffers for everything. ``--ways`` may name PyTorch
as well, which has a process for each device: eagerly, with steps as CUDA graphs, or with these
compiled by ``torch.compile``, which takes seconds for each row. The table has microseconds of a
step, medians of several runs, and the gain of all devices over one.

    programs      what is computed, in the words of a vocabulary
    vocabularies  arrays and collectives of each way
    in_torch      the same of PyTorch, and its processes
    measuring     one way in its process
"""
