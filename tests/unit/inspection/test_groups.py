"""Groups of boxes: what is folded into one, and the edges that are left."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

import tracegraph as tg
from lowering.plan.nodes import walk
from tracegraph.inspection.argument_paths import grouped, short_names
from tracegraph.inspection.diagram import Box, DiagramRegion, Edge, boxes_in
from tracegraph.inspection.groups import BoxGroup, repeated, with_groups


@st.composite
def grouped_regions(draw: Any) -> tuple[DiagramRegion, list[BoxGroup]]:
    """A region of boxes with names, and groups of some of them."""
    count = draw(st.integers(1, 12))
    pairs = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1), st.integers(0, 2))
    edges = [Edge(a, b, port) for a, b, port in draw(st.lists(pairs, max_size=25)) if a < b]
    owners = draw(st.lists(st.integers(0, 4), min_size=count, max_size=count))
    groups = [
        BoxGroup(tuple(members), Box(f"group {owner}"))
        for owner in range(2)
        if len(members := [k for k in range(count) if owners[k] == owner]) > 1
    ]
    boxes = tuple([Box(str(k), values=("a", "b", "c")) for k in range(count)])
    return DiagramRegion("", boxes, tuple(dict.fromkeys(edges))), groups


def members_of(box: Box) -> list[str]:
    return [inner.title for region in box.regions for inner in region.boxes] or [box.title]


CROSSED = (
    DiagramRegion("", tuple(map(Box, "0123")), (Edge(0, 1), Edge(2, 3))),
    [BoxGroup((0, 3), Box("outer")), BoxGroup((1, 2), Box("inner"))],
)
"""Groups that are each fine, and together each before and after the other."""


@given(grouped_regions())
@example(CROSSED)
def test_every_box_is_kept_and_edges_lead_onwards(case: Any) -> None:
    region, groups = case
    made = with_groups(region, groups)
    inside = [members_of(box) for box in made.boxes]
    assert sorted([title for titles in inside for title in titles], key=int) == [
        box.title for box in region.boxes
    ]
    at = {title: k for k, titles in enumerate(inside) for title in titles}
    assert all(edge.source < edge.target for edge in made.edges)
    wanted = {(at[str(e.source)], at[str(e.target)]) for e in region.edges}
    assert {(e.source, e.target) for e in made.edges} == {(a, b) for a, b in wanted if a != b}
    inner = sum(len(r.edges) for box in made.boxes for r in box.regions)
    assert inner == sum(at[str(e.source)] == at[str(e.target)] for e in region.edges)


def test_what_repeats_is_found() -> None:
    assert repeated("xabcabcabcy") == (1, 3, 3)
    assert repeated("aaaa") == (0, 1, 4)
    assert repeated("abcd") is None


def network(count: int) -> tuple[Any, Any]:
    def predict(params: Any, x: Any) -> Any:
        for layer in params["layers"]:
            x = np.tanh(x @ layer["w"] + layer["b"])
        return x + params["last"]

    layers = [{"w": np.ones((8, 8)), "b": np.ones(8)} for _ in range(count)]
    return predict, {"layers": layers, "last": np.ones(8)}


def test_a_tree_of_weights_is_folded_in_texts_and_pictures() -> None:
    predict, params = network(40)
    program = tg.make_program(predict)(params, np.ones(8))
    head, first, second, third, operation, *_ = str(program).splitlines()
    assert head == "program predict(params: 81 arrays, x: f64[8]) {"
    assert [first, second, third] == [
        "  param params['last']: f64[8]",
        "  param params['layers'][0:40]['b']: 40 of f64[8]",
        "  param params['layers'][0:40]['w']: 40 of f64[8,8]",
    ]
    assert operation.startswith("  a: f64[1,8] = reshape[shape=(1, 8)] x ")
    assert "matmul a params['layers'][0]['w']" in str(program)
    assert repr(program).startswith("<Program predict(params: 81 arrays, f64[8]) -> f64[8]: ")
    boxes = program.diagram().region.boxes
    titles = [box.title for box in boxes]
    assert titles[:3] == ["params: 81 arrays", "x: f64[8]", "5 operations ×40"]
    jitted = tg.jit(predict, device="host")
    jitted(params, np.ones(8))
    assert "params['layers'][0:40]['b']  40 of f64[8]" in str(jitted.last_call())
    assert jitted.programs()[0].arguments == "81 arrays, f64[8]"


def test_a_large_program_without_repetition_is_folded_around_its_loops() -> None:
    rng = np.random.default_rng(0)

    def varied(x: Any, w: Any) -> Any:
        for _ in range(2):
            for choice in rng.integers(4, size=150):
                x = [np.sin, np.sort, lambda v: v @ w, lambda v: v + 1][choice](x)
            x = tg.fori_loop(0, 3, lambda i, v: v * 2, x)
        return x

    program = tg.make_program(varied)(np.ones(8), np.ones((8, 8)))
    diagram = program.diagram()
    boxes = diagram.region.boxes
    assert diagram.drawn < 60
    assert [box.title.split()[0] for box in boxes if box.tone == "loop"] == ["while_loop"] * 2
    folded = [int(box.title.split()[0]) for box in boxes if box.is_folded]
    alone = sum(bool(box.sources) and not box.is_folded for box in boxes)
    assert sum(folded) + alone == len(program.body.eqns) > 300


def test_names_of_arguments_are_not_those_of_values() -> None:
    def f(b: Any, c: Any) -> Any:
        return (b + c) * b - c

    program = tg.make_program(f)(np.ones(3), np.ones(3))
    values = [line.split(":")[0].strip() for line in str(program).splitlines()[1:4]]
    assert values == ["a", "d", "e"]


def test_short_names_stay_apart() -> None:
    long: Sequence[str] = [f"params['a_very_long_name_of_a_part_{k}']['weights']" for k in "ab"]
    assert short_names([long[0], "x"]) == ["params…['weights']", "x"]
    assert short_names(long) == list(long)
    assert [g.text for g in grouped(["p[0][1]", "p[1][0]"], [0, 0])] == ["p[…][…]"]


def test_copies_of_a_body_and_unrolled_loops_are_one_box_each() -> None:
    def run(x: Any) -> Any:
        x = tg.fori_loop(0, 40, lambda i, v: np.sort(np.sin(v)), x, unroll=4)
        return tg.fori_loop(0, 4, lambda i, v: np.sort(np.cos(v)), x)

    lowered = tg.jit(run, device="cuda").lower(np.ones(300))
    loop, unrolled = [box for box in lowered.diagram().region.boxes if box.regions]
    (body,) = loop.regions[0].boxes
    assert (body.title, body.is_folded) == ("body ×4", True)
    assert body.lines[0] == "4 copies of 2 nodes"
    assert len(body.regions[0].boxes) == 8
    assert (unrolled.title, unrolled.is_folded) == ("fori_loop ×4", True)
    assert "… 10 inside" not in unrolled.lines
    assert lowered.diagram().to_depth(1).size < lowered.diagram().size


def test_copies_of_an_unrolled_loop_are_in_one_box() -> None:
    def step(i: Any, v: Any) -> Any:
        return tg.fori_loop(0, 2, lambda j, w: np.sort(np.sin(w)), v[::-1])

    jitted = tg.jit(lambda x: tg.fori_loop(0, 40, step, x, unroll=4), device="cuda")
    lowered = jitted.lower(np.ones(300))
    (loop,) = [box for box in lowered.diagram().region.boxes if box.regions]
    inner = [box for box in boxes_in(loop.regions[0]) if box.is_folded]
    assert [(box.title, box.lines[0]) for box in inner] == [("body ×4", "4 copies of 4 nodes")]
    drawn = [box for box in boxes_in(lowered.diagram().region) if not box.is_folded]
    assert len(drawn) == sum(1 for _ in walk(lowered.plan.launch_graph))


def test_a_condition_draws_what_it_reads() -> None:
    def run(x: Any, a: Any, b: Any, w: Any) -> Any:
        return tg.while_loop(lambda v: np.sum(v) < w, lambda v: v * a + b, x)

    three = np.ones(3)
    (loop,) = [b for b in tg.make_program(run)(three, three, three, 5.0).diagram().region.boxes
               if b.regions]  # fmt: skip
    condition, body = loop.regions
    assert [box.title.split(": ")[1] for box in condition.boxes if box.tone == "input"] == [
        "f64[3]",
        "~f64[]",
    ]
    assert sum(box.tone == "input" for box in body.boxes) == 3


def test_plans_of_functions_have_the_names_of_the_arguments() -> None:
    def scaled(state: Any, rate: Any) -> Any:
        return {"v": state["v"] * rate, "u": state["u"]}

    arguments = {"v": np.ones(100), "u": np.ones(8)}, 2.0
    lowered = tg.jit(scaled, device="cuda", donate_argnums=0).lower(*arguments)
    assert "by value: rate" in lowered.explain()
    assert "donated state['v'] f64[100]: overwritten by output" in lowered.explain()
    boxes = list(boxes_in(lowered.diagram().region))
    texts = [text for box in boxes for text in (box.title, *box.lines, *box.facts().values())]
    assert any("state['v'][i0]" in text for text in texts)
    assert not any("input[" in text for text in texts)
    assert "input[0]" in str(lowered)
