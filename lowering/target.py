"""Target: what planning needs to know of the devices of a backend, as data.

Planning, scheduling and fusion read these figures and never the name of a device. Each backend has
its own Target, beside its code in `lowering.backends`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from lowering.scheduling.device_costs import Costs


@dataclass(frozen=True, slots=True)
class Limits:
    """What one kernel may have.

    Args:
        kernel_buffers: buffers that the nests of a fused kernel access. The default fits CUDA's
            32764 bytes of kernel parameters, 8 for each buffer.
    """

    kernel_buffers: int = 4000


@dataclass(frozen=True, slots=True)
class FusionPolicy:
    """When nests that could share a kernel do.

    Args:
        strided_bytes: row passes are fused unless that adds this many bytes of strided access. The
            default is what an H200 moves in the time of a further kernel: 0.7 µs at 4.2 TB/s.
    """

    strided_bytes: float = 0.7e6 / 0.24


@dataclass(frozen=True, slots=True)
class Target:
    """The devices of one backend, as planning sees them."""

    costs: Costs
    limits: Limits = field(default_factory=Limits)
    fusion: FusionPolicy = field(default_factory=FusionPolicy)
