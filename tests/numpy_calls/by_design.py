"""What differs from NumPy, or is refused, by design: each kind with its reason."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tracegraph import errors

from .calls import Call


@dataclass(frozen=True, slots=True)
class Design:
    """Calls whose target, kind of outcome and detail match, and why they are as they are."""

    target: str
    kind: str
    detail: str
    reason: str


LIST: Sequence[Design] = ()

_BY_ERROR = ((errors.ShapeDependentError, "the shape depends on traced elements: size= gives one"),)
"""Refusals that follow from what a trace is, by the class of the error."""


def reason_for(call: Call, kind: str, detail: str, error: Exception | None) -> str:
    """Why a call may differ or be refused; nothing if it may not."""
    if kind == "refused":
        for cls, reason in _BY_ERROR:
            if isinstance(error, cls):
                return reason
    for entry in LIST:
        if (
            entry.kind == kind
            and re.fullmatch(entry.target, call.target)
            and re.search(entry.detail, detail)
        ):
            return entry.reason
    return ""
