"""`jitted.programs`: what was compiled, and its use so far."""

import weakref
from datetime import datetime, timedelta

import numpy as np

import tracegraph
from tests.helpers.threads import collect_garbage


def halve(x):
    return tracegraph.while_loop(lambda x: x.sum() > 1, lambda x: x / 2, x)


def test_a_function_that_was_never_called_has_none():
    programs = tracegraph.jit(halve, device="host").programs()
    assert programs == ()
    assert repr(programs) == "<0 programs>"
    assert str(programs) == "arguments  device  launches  bytes held  last used  schedules"


def test_each_combination_of_types_is_an_entry():
    f = tracegraph.jit(halve, device="host")
    for _ in range(3):
        f(np.ones(10))
    f(np.ones(4, np.float32))
    first, second = f.programs()
    assert (first.arguments, first.launches) == ("f64[10]", 3)
    assert (second.arguments, second.launches) == ("f32[4]", 1)
    assert first.types == (tracegraph.ArrayType("float64", (10,)),)
    assert first.device == "host"
    assert not first.evicted
    assert sum(program.bytes_held for program in f.programs()) == f.stats()["bytes_held"]


def test_schedules_name_the_line_and_the_construct():
    f = tracegraph.jit(halve, device="host")
    f(np.ones(10))
    ((each,),) = [program.schedules for program in f.programs()]
    assert each.construct == "while_loop"
    assert each.line == f"test_programs.py:{halve.__code__.co_firstlineno + 1}"
    assert each.schedule in str(f.programs())


def test_the_last_use_is_a_point_in_time():
    f = tracegraph.jit(lambda x: x + 1, device="host")
    before = datetime.now().astimezone()
    f(1)
    (built,) = f.programs()
    f(2)  # by the fast call
    (used,) = f.programs()
    slack = timedelta(seconds=1)  # of the wall clock against the other
    assert before - slack <= built.last_used <= used.last_used + slack
    assert used.last_used.tzinfo is not None


def test_the_clock_of_uses_never_goes_back():
    f = tracegraph.jit(lambda x: x + 1, device="host")
    f(1)
    (cached,) = f._builds.executables.values()
    times = []
    for _ in range(100):
        f(1)
        times.append(cached.used)
    assert times == sorted(times)
    assert times[0] < times[-1]


def test_static_values_and_modes_are_shown():
    f = tracegraph.jit(lambda x, n: x * n, static_argnums=1, device="host")
    f(1.0, 3)
    with tracegraph.check_indices():
        f(1.0, 3)
    plain, checked = f.programs()
    assert plain.arguments == checked.arguments == "~f64[], 3"
    assert (plain.modes, checked.modes) == ((), ("checked_indices",))
    assert "~f64[], 3 [checked_indices]" in str(f.programs())


def test_texts_are_short():
    f = tracegraph.jit(halve, device="host")
    f(np.ones(10))
    (program,) = f.programs()
    held = f"{program.bytes_held:,} B held"
    assert repr(program) == f"<halve(f64[10]) on host: 1 launch, {held}>"
    assert repr(f.programs()) == "<1 program>"
    _, row = str(f.programs()).splitlines()
    assert row.startswith("f64[10]    host    1         ")


def test_a_report_keeps_no_executable():
    f = tracegraph.jit(lambda x: x + 1, device="host")
    f(np.ones(3))
    (cached,) = f._builds.executables.values()
    executable = weakref.ref(cached.compiled.executable)
    report = f.programs()
    del f, cached
    collect_garbage()
    assert executable() is None
    assert report[0].launches == 1


def test_a_reset_forgets_them():
    f = tracegraph.jit(lambda x: x + 1, device="host")
    f(1)
    f.forget()
    assert f.programs() == ()
