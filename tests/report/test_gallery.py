"""The pictures in the documentation show the comment as it is, and it is short."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from benchmarks.comment_gallery import GOLDEN, SCENES, SCHEMES, WIDTHS, comment_of, page_of
from perfci.report.exporters.json import render as render_json
from perfci.report.reading import read_report
from perfci.report.templates import LIMIT

if TYPE_CHECKING:
    from playwright.sync_api import Browser

FOLDER = Path(__file__).parents[2] / "docs" / "images" / "comments"
LONGEST = {
    "all-quiet": 4,
    "improvements": 12,
    "one-regression": 12,
    "noisy-machine": 12,
    "crashed": 8,
}
"""Lines before the first fold."""


@pytest.mark.parametrize("name", SCENES)
def test_the_gallery_shows_the_comment_as_it_is(name: str) -> None:
    text = comment_of(name)
    assert (FOLDER / f"{name}.md").read_text(encoding="utf-8") == text


@pytest.mark.parametrize("name", SCENES)
def test_the_gallerys_reports_could_have_been_measured(name: str) -> None:
    for report in SCENES[name]():
        text = render_json(report)
        assert json.loads(render_json(read_report(text))) == json.loads(text)


@pytest.mark.parametrize("name", SCENES)
def test_before_the_first_fold_there_is_little_to_read(name: str) -> None:
    text = comment_of(name)
    open_part = text.split("<details>")[0].strip().splitlines()
    assert len(open_part) <= LONGEST.get(name, 25)
    assert len(text) <= LIMIT


@pytest.mark.parametrize("name", GOLDEN.values())
def test_nothing_of_a_comment_is_wider_than_a_desktop_or_a_phone(
    name: str, browser: Browser
) -> None:
    pytest.importorskip("cmarkgfm")
    for width in WIDTHS:
        page = browser.new_page(viewport={"width": width, "height": 900})
        page.set_content(page_of(comment_of(name), SCHEMES[0]))
        page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
        folded = width < WIDTHS[0]  # there a folded table may scroll in itself; the page never
        tables = "body > table" if folded else "table"
        wider = page.evaluate(
            f"[document.documentElement, ...document.querySelectorAll({tables!r})]"
            ".filter(one => one.scrollWidth > one.clientWidth)"
            ".map(one => one.tagName + ' ' + one.scrollWidth + ': ' + one.innerText.slice(0, 80))"
        )
        page.close()
        assert wider == [], f"{width} px"


def test_a_heading_counts_exactly_the_rows_below_it() -> None:
    text = comment_of("regressions")
    assert "perfci: 7 regressions in 2 cases\n" in text
    open_part = text.split("<details>")[0]
    assert open_part.count("\n| ") == 1 + 7
    assert "Folded below: 2 warnings." in open_part
