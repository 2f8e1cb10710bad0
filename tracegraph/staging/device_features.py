"""DeviceFeatures: what a device and its driver can do, as `tracegraph.features` reports it."""

from __future__ import annotations

from dataclasses import fields

from tracegraph.generated.dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceFeatures:
    """What graphs on a device may hold and do, found by trying it. It prints as a few lines.

    Where there are no CUDA graphs, as on the host, all flags are False: plans run there in another
    way.

    >>> import tracegraph
    >>> print(tracegraph.features("host"))  # doctest: +ELLIPSIS
    host: ...
      no CUDA graphs
    """

    device: str
    """``"host"``, ``"cuda:0"``"""
    name: str
    """What the maker calls the device."""
    compute_capability: tuple[int, int] | None = None
    """Such as (9, 0); None without CUDA."""
    cuda_version: tuple[int, int] | None = None
    """The latest CUDA version that the driver supports, such as (13, 0); None without CUDA."""
    conditional_nodes: bool = False
    """IF-ELSE, SWITCH and WHILE nodes; without, the host drives loops and branches."""
    body_updates: bool = False
    """New addresses for kernels in bodies; without, they are read from a table in memory."""
    memory_nodes: bool = False
    """Scratch that each launch allocates; without, executables keep it."""
    library_updates: bool = False
    """New addresses for captured calls of libraries; without, arguments and results are copied."""
    programmatic_edges: bool = False
    """Kernels that start before those that they depend on have ended."""
    clusters: bool = False
    """Thread block clusters, which small loops in one kernel use."""
    cooperative_launches: bool = False
    """Kernels whose blocks are all resident at the same time, which larger such loops use."""
    declared_missing: tuple[str, ...] = ()
    """Features that the environment variable TRACEGRAPH_FEATURES declares missing."""

    def __str__(self) -> str:
        about = [self.name]
        if self.compute_capability is not None:
            about.append("compute capability {}.{}".format(*self.compute_capability))
        if self.cuda_version is not None:
            about.append("driver for CUDA {}.{}".format(*self.cuda_version))
        flags = [f.name for f in fields(self) if isinstance(getattr(self, f.name), bool)]
        has = [name.replace("_", " ") for name in flags if getattr(self, name)]
        lacks = [
            name.replace("_", " ") + (" (declared)" if name in self.declared_missing else "")
            for name in flags
            if not getattr(self, name)
        ]
        lines = [f"{self.device}: {', '.join(about)}"]
        if not has and self.compute_capability is None:
            lines.append("  no CUDA graphs")
        else:
            lines += [f"  has {', '.join(has)}"] if has else []
            lines += [f"  lacks {', '.join(lacks)}"] if lacks else []
        return "\n".join(lines)
