"""The site in a real browser, opened from disk: clicked through, and read by keyboard."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from perfci.report.site.words import change_text, facts
from perfci.units import format_value
from tests.lacking import needed
from tests.report.conftest import Watched
from tests.report.site.conftest import page_of, write_site
from tests.report.site.histories import GPU, quiet_trend, series, with_changes, year

if TYPE_CHECKING:
    from playwright.sync_api import Browser

expect = needed("playwright.sync_api").expect

WIDTHS = (360, 800, 1440)
RESULTS = "#results tbody tr"
H200_STEP = "article[aria-label='encoder[batch=1,mode=eager] latency_p50']:has-text('NVIDIA H200')"


def test_the_one_thing_that_matters_comes_first(watched: Watched, year_site: Path) -> None:
    page = watched.open(year_site / "index.html")
    headline = "2 series got worse since the last report; 1 older regression is open"
    assert page.locator("h1").inner_text() == headline
    newest, second = page.locator(".moved li").all_inner_texts()[:2]
    assert "graph_breaks" in newest
    assert "+5.2 %" in second
    assert "worse" in second
    assert "encoder[batch=1,mode=eager]" in second


def test_words_and_filters_narrow_the_list(watched: Watched, year_site: Path) -> None:
    page = watched.open(year_site / "index.html")
    page.wait_for_selector(RESULTS)
    assert page.locator(RESULTS).count() == 12
    page.get_by_label("Search").fill("ENCODER batch=16")
    expect(page.locator(RESULTS)).to_have_count(4)
    page.get_by_label("Environment").select_option(label="NVIDIA H200")
    assert page.locator(RESULTS).count() == 3
    page.get_by_label("Metric").select_option(label="graph_breaks")
    assert page.locator("#found").inner_text() == "1 of 12 series"
    page.get_by_label("Metric").select_option(label="all")
    page.get_by_label("Environment").select_option(label="all")
    page.get_by_label("Search").fill("")
    page.get_by_label("Only what moved").check()
    expect(page.locator(RESULTS)).to_have_count(5)
    page.get_by_label("Search").fill("nothing is called so")
    page.wait_for_selector("#results p")
    assert "Nothing matches" in page.locator("#results").inner_text()


def test_a_found_case_opens_at_its_own_chart(watched: Watched, year_site: Path) -> None:
    page = watched.open(year_site / "index.html")
    page.get_by_label("Search").fill("batch=16 graph_breaks")
    expect(page.locator(RESULTS)).to_have_count(1)
    page.locator(f"{RESULTS} a").click()
    page.wait_for_selector(".card.linked .changes")
    assert page.locator("article").first.get_attribute("class") == "card worse linked"
    assert page.locator(".card.linked h3").inner_text().startswith("graph_breaks")
    assert page.locator(".card.linked .latest").inner_text() == "1"


def test_the_keyboard_alone_tells_each_nights_commit(watched: Watched, year_site: Path) -> None:
    page = watched.open(page_of(year_site, "encoder"))
    card = page.locator(H200_STEP)
    page.wait_for_selector(f"{H200_STEP} >> .changes")
    plot = card.get_by_role("slider")
    for _ in range(40):  # nothing but Tab leads there
        page.keyboard.press("Tab")
        if plot.evaluate("plot => plot === document.activeElement"):
            break
    assert plot.evaluate("plot => plot === document.activeElement")
    assert card.locator(".cursor-dot").count() == 1
    page.keyboard.press("Home")
    first = plot.get_attribute("aria-valuetext")
    assert first is not None
    assert first.startswith("21 Nov 2025, 1.2")
    assert first.endswith("Fuse the attention mask into the softmax")
    page.keyboard.press("PageDown")
    said = card.locator(".readout").inner_text()
    assert "8 Nov 2026" in said
    assert "8c47536000" in said
    assert "Pad the vocabulary to a multiple of 64" in said
    page.keyboard.press("ArrowLeft")
    assert "7 Nov 2026" in card.locator(".readout").inner_text()
    page.keyboard.press("Tab")
    assert "20 Nov 2026" in card.locator(".readout").inner_text()


def test_a_change_and_the_releases_are_drawn(watched: Watched, year_site: Path) -> None:
    page = watched.open(page_of(year_site, "encoder"))
    page.wait_for_selector(f"{H200_STEP} >> .changes")
    card = page.locator(H200_STEP)
    assert card.locator("text.size").text_content() == "▲ +5.2 %"
    assert card.locator("rect.range.worse").count() == 1
    assert card.locator("line.release").count() == 3
    assert card.locator(".release-name").all_text_contents() == ["v1.4.0", "v1.5.0", "v1.6.0"]
    told = card.locator(".changes li").inner_text()
    assert "ee0fd9af00..8c47536000" in told
    assert "95 %: +4.4 … +6.0 %" in told


def test_what_a_reader_has_to_know_of_a_change_is_said_as_on_the_overview(
    watched: Watched, tmp_path: Path
) -> None:
    trend = year()
    nights = trend.timelines[GPU].runs
    wide = replace(
        trend.changes[0],
        ratio=3.5,
        within=(349, 353),
        commits_within=(nights[349].sha, nights[353].sha),
        benchmark_changed=True,
        note="meant",
    )
    site = write_site(with_changes(trend, wide), tmp_path / "site")
    page = watched.open(page_of(site, "encoder"))
    page.wait_for_selector(f"{H200_STEP} >> .changes")
    card = page.locator(H200_STEP)
    told = card.locator(".changes li").inner_text()
    assert f"▲ {change_text(wide, 's')}" in told
    assert " · ".join((*facts(wide), "“meant”", f"id {wide.id}")) in told
    assert f"with 95 % confidence in {nights[349].sha[:10]}..{nights[353].sha[:10]}" in told
    assert card.locator("rect.within.worse").count() == 1


def test_missing_nights_break_the_line_and_single_nights_are_dots(
    watched: Watched, tmp_path: Path
) -> None:
    trend = quiet_trend(nights=30)
    seldom = series("seldom", [1.0, 1.01, 1.0, 1.01, 1.0], rows=[0, 5, 9, 10, 20])
    site = write_site(replace(trend, series=(seldom,)), tmp_path / "site")
    page = watched.open(page_of(site, "seldom"))
    page.wait_for_selector("path.dots")
    drawn = page.locator("path.values").get_attribute("d") or ""
    assert (drawn.count("M"), drawn.count("L")) == (4, 1)
    dots = page.locator("path.dots").get_attribute("d") or ""
    assert dots.count("M") == 3


def test_an_outlier_does_not_flatten_the_chart_and_is_told(
    watched: Watched, year_site: Path
) -> None:
    page = watched.open(page_of(year_site, "encoder"))
    card = page.locator("article:has-text('AMD EPYC'):has(.latest:has-text('5.17 ms'))")
    page.get_by_label("Search").fill("batch=16 eager epyc")
    page.wait_for_selector("path.outside")
    assert card.locator("path.outside").count() == 1
    ticks = [float(text) for text in card.locator("text.end").all_text_contents() if text != "ms"]
    assert max(ticks) < 6.0
    card.get_by_text("All runs as a table").click()
    assert "12." in card.locator("td.number").nth(365 - 1 - 301).inner_text()


def test_the_button_turns_the_colours_and_the_choice_stays(
    watched: Watched, year_site: Path
) -> None:
    page = watched.open(year_site / "index.html")
    ground = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(ground)
    page.get_by_role("button", name="Switch to dark").click()
    dark = page.evaluate(ground)
    assert dark != light
    page.reload()
    assert page.evaluate(ground) == dark
    page.get_by_role("button", name="Switch to light").click()
    assert page.evaluate(ground) == light


@pytest.mark.parametrize("watched", [{"width": width} for width in WIDTHS], indirect=True)
@pytest.mark.parametrize("where", ["index", "encoder"])
def test_nothing_hangs_over_at_any_size(watched: Watched, year_site: Path, where: str) -> None:
    path = year_site / "index.html" if where == "index" else page_of(year_site, where)
    page = watched.open(path)
    page.wait_for_selector(RESULTS if where == "index" else ".changes")
    shown = page.evaluate("[innerWidth, document.documentElement.scrollWidth]")
    assert shown[0] in WIDTHS
    assert shown[1] <= shown[0]  # a scroll bar may take some of it
    for card in page.locator("article, #results, .moved").all():
        box = card.bounding_box()
        assert box is None or box["x"] + box["width"] <= shown[0]


def test_a_page_without_its_data_says_so(browser: Browser, year_site: Path, tmp_path: Path) -> None:
    copied = tmp_path / "copied"
    shutil.copytree(year_site, copied)
    for file in (copied / "data").glob("encoder-*.0.js"):
        file.unlink()
    page = browser.new_page()
    page.goto(page_of(copied, "encoder").as_uri())
    page.wait_for_selector(".readout .worse")
    assert "copy the whole folder" in page.locator(".readout").first.inner_text()
    page.close()


def test_numbers_read_the_same_in_the_browser(watched: Watched, year_site: Path) -> None:
    page = watched.open(year_site / "index.html")
    page.wait_for_selector(RESULTS)
    values = [0.0, 1.0, 12.34, 0.00123, 1.2e-7, 3.3e-13, 123.7, 1e6, 2.5e9, 999.4, 5e-4, 0.51]
    for unit in ("s", "bytes", "bytes/call", "count", "ratio", "items/s"):
        told = page.evaluate("([v, u]) => v.map((one) => perfci.value(one, u))", [values, unit])
        assert told == [format_value(value, unit) for value in values]
