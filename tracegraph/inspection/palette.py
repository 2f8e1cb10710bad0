"""Tones of boxes: colours that say what kind of thing a box is, in light and dark.

The words in a box say the same, so colours need not be told apart.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

Tone = Literal[
    "plain",
    "input",
    "constant",
    "output",
    "compute",
    "fold",
    "move",
    "library",
    "loop",
    "branch",
    "persistent",
    "effect",
    "own",
    "host",
    "captured",
    "event",
]
"""A kind of thing.

Values: input, constant, output. Work: compute (elementwise, a kernel), fold (reductions and scans),
move (copies, views, scatters), library (calls of libraries), own (kernels that users wrote),
captured (calls that were captured), host (callbacks), effect (prints, checks), event. Control flow:
loop, branch, persistent (loops inside of one kernel).
"""


class Colours(NamedTuple):
    """The colours of a box: its inside, and its border, which its caption shares."""

    fill: str
    stroke: str


class Theme(NamedTuple):
    """Colours of everything but boxes, then those of boxes by tone."""

    surface: str
    region: str
    ink: str
    muted: str
    wire: str
    accent: str
    tones: dict[Tone, Colours]


LIGHT = Theme(
    "#ffffff", "#f7f8fa", "#1d2330", "#5c6577", "#838da1", "#d4380d",
    {
        "plain": Colours("#f1f3f6", "#5f6979"),
        "input": Colours("#eef2f7", "#5b6b82"),
        "constant": Colours("#f3f0ea", "#756648"),
        "output": Colours("#e6ebf2", "#475569"),
        "compute": Colours("#e7f0fd", "#2f69b5"),
        "fold": Colours("#e0f3f1", "#17756c"),
        "move": Colours("#edeff3", "#626d80"),
        "library": Colours("#f1e9fc", "#7f4fc4"),
        "loop": Colours("#e8f5e6", "#347a2d"),
        "branch": Colours("#fdf1dc", "#93600f"),
        "persistent": Colours("#d8f0d4", "#24701d"),
        "effect": Colours("#fde9ec", "#c0394d"),
        "own": Colours("#dff2fa", "#126f92"),
        "host": Colours("#fce8f4", "#b03c86"),
        "captured": Colours("#ebe9fd", "#5a50c8"),
        "event": Colours("#f6f3dc", "#776d12"),
    },
)  # fmt: skip

DARK = Theme(
    "#14171e", "#1a1e27", "#e7eaf0", "#9aa4b6", "#6a7488", "#ff8a5c",
    {
        "plain": Colours("#232833", "#8a94a6"),
        "input": Colours("#222934", "#8593aa"),
        "constant": Colours("#2b2820", "#a8966f"),
        "output": Colours("#28303d", "#a3b1c6"),
        "compute": Colours("#1a2a42", "#6aa3ec"),
        "fold": Colours("#143230", "#4fb8ad"),
        "move": Colours("#262b35", "#8d97a9"),
        "library": Colours("#2b2140", "#ab86e6"),
        "loop": Colours("#1b2f1a", "#72b96a"),
        "branch": Colours("#362a14", "#d9a24a"),
        "persistent": Colours("#1f401b", "#8ad37f"),
        "effect": Colours("#3a1d23", "#ea7f8f"),
        "own": Colours("#12303c", "#56b5d6"),
        "host": Colours("#381f30", "#dd7fba"),
        "captured": Colours("#24214a", "#938bf0"),
        "event": Colours("#2e2b14", "#c2b650"),
    },
)  # fmt: skip
