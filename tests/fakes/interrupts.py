"""Interrupts at chosen points, by a trace function: signals come when they like."""

import itertools
import sys
from dis import opname
from pathlib import Path

LOOKS = {"CALL", "CALL_FUNCTION_EX", "CALL_KW", "JUMP_BACKWARD", "RESUME"}
"""Bytecodes behind which Python looks for signals: nothing comes between others."""


class InterruptError(Exception):
    pass


def interrupt_after(count, modules, behind=frozenset(opname)):
    """A trace function that raises after as many bytecodes of these kinds in the modules."""
    left = iter(range(count))

    def enter(frame, event, argument):
        if Path(frame.f_code.co_filename).stem not in modules:
            return None
        frame.f_trace_opcodes = True
        last = None

        def step(frame, event, argument):
            nonlocal last
            if event == "opcode":
                if last in behind and next(left, None) is None:
                    sys.settrace(None)
                    raise InterruptError
                last = opname[frame.f_code.co_code[frame.f_lasti]]
            return step

        return step

    return enter


def interrupted(call, *modules):
    """Make a call over and over, interrupted at each point where signals may come in turn."""
    for count in itertools.count():
        sys.settrace(interrupt_after(count, modules, LOOKS))
        try:
            call()
        except InterruptError:
            pass
        else:
            break
        finally:
            sys.settrace(None)
        yield
    assert count > 0, f"nothing of {modules} was run"
