"""The flame graph: widths that add up, both sides in it, and names that are text."""

from __future__ import annotations

from perfci.model.why import Stack, Why
from perfci.report.drawing import WIDTH, flame_of
from perfci.report.exporters.html import render as render_page
from tests.report.hostile import NAMES
from tests.report.page.reports import drawn_report
from tests.report.page.test_page import loads_nothing

STACKS = (
    Stack(("call (bench.py)", "forward (model.py)", "aten::mm"), 6e-3, 6e-3),
    Stack(("call (bench.py)", "forward (model.py)"), 2e-3, 5e-3),
    Stack(("call (bench.py)", "gone (model.py)"), 2e-3, 0.0),
    Stack(("call (bench.py)", "tiny (model.py)"), 1e-5, 1e-5),
)
WHY = Why("net", stacks=STACKS)


def test_boxes_stand_on_their_callers_and_what_grew_is_red() -> None:
    flame = flame_of(WHY)
    assert flame is not None
    boxes = {box.title.split(" ")[0].rstrip(":"): box for box in flame.boxes}
    assert "tiny" not in boxes
    assert boxes["a"].width == WIDTH
    for name, below in (("forward", "call"), ("gone", "call"), ("aten::mm", "forward")):
        upper, lower = boxes[name], boxes[below]
        assert upper.y > lower.y
        assert lower.x <= upper.x
        assert upper.x + upper.width <= lower.x + lower.width + 0.02
    assert {name: box.shade for name, box in boxes.items()} == {
        "a": "slightly worse",
        "call": "slightly worse",
        "forward": "much worse",
        "aten::mm": "same",
        "gone": "much better",
    }
    assert boxes["forward"].title == "forward (model.py): 8 ms → 11.0 ms"
    assert flame.lines[0] == ("forward (model.py)", "2 ms", "5 ms", "+3 ms")


def test_one_side_alone_is_no_flame_graph() -> None:
    assert flame_of(Why("net")) is None
    assert flame_of(Why("net", stacks=(Stack(("f",), 0.0, 1.0),))) is None


def test_whatever_functions_are_called_they_are_text() -> None:
    every = tuple(Stack((name or "x", name or "y"), 1e-3, 2e-3) for name in NAMES)
    deep = Stack(tuple(map(str, range(500))), 1.0, 1.0)
    page = render_page(drawn_report(why=tuple(Why(name, stacks=(*every, deep)) for name in NAMES)))
    loads_nothing(page)
    assert page.count('<details class="fold flame">') == 40
    assert f"And {len(NAMES) - 40} more." in page
    assert "<img" not in page
