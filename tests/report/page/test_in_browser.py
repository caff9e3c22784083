"""The page in a real browser, opened from disk: by keyboard, on a phone, in either colours."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfci.report.exporters.html import render as render_page
from tests.lacking import needed
from tests.report.conftest import Watched, axe_finds_nothing
from tests.report.mode_reports import mode_comparison
from tests.report.page.reports import drawn_report, hostile_page_report, large_report

expect = needed("playwright.sync_api").expect


SCHEMES = [{"scheme": "light", "width": 1280}, {"scheme": "dark", "width": 390}]
OPEN_ALL = "document.querySelectorAll('details').forEach((one) => { one.open = true; })"
PAGES = {
    "drawn": drawn_report,
    "hostile": hostile_page_report,
    "large": lambda: large_report(1000),
    "tables": mode_comparison,
}


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pages")
    for name, report in PAGES.items():
        (folder / f"{name}.html").write_text(render_page(report()), encoding="utf-8")
    return folder


@pytest.mark.parametrize("watched", SCHEMES, indirect=True)
def test_axe_finds_nothing_and_nothing_sticks_out(watched: Watched, pages: Path) -> None:
    page = watched.open(pages / "drawn.html")
    page.evaluate(OPEN_ALL)
    expect(page.locator(".moved figure")).to_have_count(8)
    page.evaluate(OPEN_ALL)
    expect(page.locator(".pairs").first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    axe_finds_nothing(watched)


@pytest.mark.parametrize("watched", SCHEMES, indirect=True)
def test_the_modes_that_changed_stand_open(watched: Watched, pages: Path) -> None:
    page = watched.open(pages / "tables.html")
    (changed, same) = page.locator("details.modes").all()
    assert changed.locator("tbody tr").count() == 4
    assert "on base it was default" in changed.inner_text()
    expect(changed.locator("table")).to_be_visible()
    expect(same.locator("table")).to_be_hidden()
    page.evaluate(OPEN_ALL)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    axe_finds_nothing(watched)


def test_each_pair_is_a_dot(watched: Watched, pages: Path) -> None:
    page = watched.open(pages / "drawn.html")
    row = page.locator(".moved li", has_text="latency_p50").first
    strip = row.locator(".strip svg")
    assert strip.locator(".pair").count() == 7
    assert (strip.get_attribute("aria-label") or "").startswith("7 of 7 pairs rise; change +6.5 %")
    assert row.locator(".badge").inner_text() == "code"


def test_the_keyboard_opens_a_row_and_copies_what_replays_it(watched: Watched, pages: Path) -> None:
    page = watched.open(pages / "drawn.html")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    row = page.locator(".moved li", has_text="latency_p50").first
    summary = row.locator("summary").first
    for _ in range(10):  # nothing but Tab leads there
        page.keyboard.press("Tab")
        if summary.evaluate("one => one === document.activeElement"):
            break
    outline = "one => getComputedStyle(one).outlineStyle + getComputedStyle(one).outlineWidth"
    assert summary.evaluate(outline) == "solid2px"
    page.keyboard.press("Enter")
    expect(row.locator("figure")).to_have_count(4)
    expect(row.locator("circle.worker")).to_have_count(14)
    expect(row.locator("circle.first-call.head")).to_have_count(15)
    warm = row.get_by_role("img", name="First calls: base from 310 ms to 1.24 ms in 15 calls")
    expect(warm).to_be_visible()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert row.locator(".pairs tbody tr").nth(2).inner_text().startswith("3")
    page.keyboard.press("Tab")  # the table, which may scroll
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(row.locator(".replay [role=status]")).to_have_text("copied")
    line = f"perfci compare {'a' * 40} {'b' * 40} -k 'encoder[batch=1,mode=eager]'"
    assert page.evaluate("navigator.clipboard.readText()") == line


def test_a_thousand_rows_are_searched(watched: Watched, pages: Path) -> None:
    page = watched.open(pages / "large.html")
    lines = page.locator("#results > li")
    assert lines.count() == 25
    assert page.locator("#found").inner_text() == "1,000 of 1,000 comparisons"
    page.get_by_label("Only what moved").check()
    assert page.locator("#found").inner_text() == "20 of 1,000 comparisons"
    page.get_by_label("Only what moved").uncheck()
    page.get_by_label("Search").fill("layer=999")
    expect(lines).to_have_count(1)
    lines.locator("summary").first.click()
    expect(lines.locator("figure")).to_have_count(4)
    page.get_by_label("To blame").select_option(label="code")
    assert page.locator("#found").inner_text() == "0 of 1,000 comparisons"


def test_no_name_is_more_than_text(watched: Watched, pages: Path) -> None:
    page = watched.open(pages / "hostile.html")
    page.evaluate(OPEN_ALL)
    page.get_by_role("button", name="Show").click()
    assert page.locator("#results a, #results img, #results script, .moved a").count() == 0
    assert page.locator("#results code", has_text="<img src=x onerror=alert(1)>").count() > 0
