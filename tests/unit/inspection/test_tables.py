"""Tables: aligned text, HTML that folds, and strings that are reports."""

from __future__ import annotations

import pickle
import re

import numpy as np

import tracegraph as tg
from tracegraph.inspection.tables import MOST_OPEN, MOST_ROWS, Report, ReportSection, TextTable

COUNT = 100
ROWS = [(f"<node {k}>", str(k * 7 % COUNT)) for k in range(COUNT)]
LONG = TextTable(("node", "µs"), ROWS, 1, [float(cost) for _, cost in ROWS], ("sum", "4950"))


def test_a_long_table_has_its_costliest_rows_first() -> None:
    section = ReportSection("title", LONG, [f"note {k}" for k in range(COUNT)], "nodes")
    short, whole = Report.of([section], details=False), Report.of([section])
    lines = short.splitlines()
    costs = [int(line.split()[-1]) for line in lines[2 : 2 + MOST_ROWS]]
    assert costs == [*range(99, 99 - MOST_ROWS, -1)]
    assert lines[2 + MOST_ROWS : 4 + MOST_ROWS] == [
        "sum        4950",
        f"the costliest {MOST_ROWS} of {COUNT} nodes; details=True shows all",
    ]
    assert lines[-1] == f"  … {COUNT - MOST_ROWS} more; details=True shows all"
    assert whole.splitlines()[2:5] == ["<node 0>      0", "<node 1>      7", "<node 2>     14"]
    assert len(whole.splitlines()) == 2 + COUNT + 1 + COUNT


def test_a_notebook_folds_what_is_long() -> None:
    html = Report.of([ReportSection("a <title>", LONG)])._repr_mimebundle_()["text/html"]
    shown, folded = html.split("<details>")
    assert "<p>a &lt;title&gt;</p>" in shown
    assert len(re.findall("<td>&lt;node", shown)) == MOST_OPEN
    assert len(re.findall("<td>&lt;node", folded)) == COUNT
    assert '<td class="number">99</td>' in shown
    assert folded.startswith(f"<summary>all {COUNT}</summary>")


def test_a_report_is_a_string() -> None:
    report = Report.of([ReportSection("", TextTable(("a", "b"), [("1", "2")]), ["end"])])
    assert isinstance(report, str)
    assert report == repr(report) == "a  b\n1  2\nend"
    copy = pickle.loads(pickle.dumps(report))
    assert (copy, copy.sections) == (report, report.sections)


def test_what_prints_as_a_table_is_one_in_a_notebook() -> None:
    double = tg.jit(lambda x: tg.fori_loop(0, 3, lambda i, v: v * 2, x), device="host")
    double(np.ones(3))
    lowered = double.lower(np.ones(3))
    compiled = lowered.compile()
    profile = compiled.profile(np.ones(3))
    for shown in (lowered.explain(), double.programs(), double.last_call(), profile):
        bundle = shown._repr_mimebundle_()
        assert bundle["text/plain"] == str(shown)
        assert "<table>" in bundle["text/html"]
    assert compiled.explain() == lowered.explain() == lowered.explain(details=True)
