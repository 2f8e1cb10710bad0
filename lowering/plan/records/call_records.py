"""Layout of calls in the callback ring, and of their answers.

A call is sent in frames: a head (`tg_frame`: the number of the call's site, the bytes of the frame,
whether it is the first and the last of the call, the number of the call at its site) and a part of
the arguments. So a call may be larger than the ring, and what remains of one that was given up is
recognized. The parts make up the record of the arguments, in which each begins at a multiple of 16
bytes. Frames begin at such a multiple in the ring, so no element is split where it wraps around.

An answer is a head (`tg_answer`) and the results, each at a multiple of 16 bytes.
"""

from __future__ import annotations

from lowering.plan.records.print_records import HEAD_BYTES, Record

FRAME_HEAD_BYTES = 32
FRAME_BYTES = 1 << 15
"""The most bytes of arguments in a frame: enough that the wait at the end of each costs little."""

FIRST, LAST = 1, 2
"""The marks in a frame's head."""

ANSWER_HEAD_BYTES = 32
ASKED, ANSWERED, FAILED = range(3)
"""The words of an answer's head: the number of the last call, which the device writes; that of the
last one that was answered, and whether it has no results, which the host writes."""


def argument_bytes(record: Record) -> int:
    """The bytes of the arguments of a call, without a head."""
    return record.nbytes - HEAD_BYTES


def frame_elements(itemsize: int) -> int:
    """The elements of one argument in a full frame."""
    return FRAME_BYTES // itemsize


def answer_offset(record: Record, position: int) -> int:
    """Where a result is in the answer whose results have this record."""
    return ANSWER_HEAD_BYTES + record.offsets[position] - HEAD_BYTES


def answer_bytes(record: Record) -> int:
    """The bytes of an answer."""
    return ANSWER_HEAD_BYTES + argument_bytes(record)
