"""Profiles of meshes: the times of the nodes on each device."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from lowering.plan.reports.profile import Profile
from lowering.plan.reports.rooflines import microseconds
from lowering.plan.reports.trace_events import trace_events, written_events
from tracegraph.generated.dataclass import dataclass
from tracegraph.inspection.tables import Report
from tracegraph.inspection.tabulated import Tabulated


@dataclass(frozen=True, slots=True, repr=False)
class MeshProfile(Tabulated):
    """The times of the nodes on each device of a mesh that this process has.

    All devices run the same nodes at the same time. What one of them waits for others is in the
    time of the collective where they meet. It prints as a table of each device.

    Args:
        name: of the function.
        devices: the profile of each device, by its number in the mesh.
    """

    name: str
    devices: Mapping[int, Profile]

    @property
    def seconds(self) -> float:
        """The sum of all nodes, on the device where that is most."""
        return max([profile.seconds for profile in self.devices.values()])

    def __repr__(self) -> str:
        longest = microseconds(self.seconds)
        return f"<profile of {self.name} on {len(self.devices)} devices: {longest} µs>"

    def report(self) -> Report:
        """The table of each device."""
        sections = []
        for device, profile in self.devices.items():
            for section in profile.report().sections:
                sections.append(replace(section, title=f"device {device}: {section.title}"))
        return Report.of(sections)

    def trace_events(self) -> dict[str, Any]:
        """As that of a profile of one device; each device is a process."""
        events = []
        for device, profile in self.devices.items():
            name = f"{self.name}, device {device}"
            found = trace_events(name, profile.nodes)["traceEvents"]
            events += [{**event, "pid": device + 1} for event in found]
        return {"traceEvents": events, "displayTimeUnit": "ns"}

    def write_trace(self, path: str | os.PathLike[str]) -> Path:
        """Write the trace events to a file, for https://ui.perfetto.dev; its path.

        Raises:
            OSError: it cannot be written.
        """
        return written_events(path, self.trace_events())
