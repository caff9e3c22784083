"""The state of a page is in its address; charts zoom and stand on dates."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.lacking import needed
from tests.report.conftest import Watched
from tests.report.site.conftest import page_of, write_site
from tests.report.site.histories import year

expect = needed("playwright.sync_api").expect

RESULTS = "#results tbody tr"
DRAWN = "path.values"


def test_a_search_is_in_the_address_and_there_again_after_a_reload(
    watched: Watched, year_site: Path
) -> None:
    page = watched.open(year_site / "index.html")
    page.wait_for_selector(RESULTS)
    page.get_by_label("Search").fill("encoder batch=16")
    page.get_by_label("Environment").select_option(label="NVIDIA H200")
    page.get_by_label("Only what moved").check()
    expect(page.locator(RESULTS)).to_have_count(2)
    assert "environment=NVIDIA+H200" in page.url
    page.reload()
    expect(page.locator(RESULTS)).to_have_count(2)
    assert page.get_by_label("Search").input_value() == "encoder batch=16"
    assert page.get_by_label("Only what moved").is_checked()


def test_a_mouse_drawn_over_one_chart_zooms_all_of_them_and_the_address_keeps_it(
    watched: Watched, year_site: Path
) -> None:
    page = watched.open(page_of(year_site, "encoder"))
    page.wait_for_selector(f".card >> nth=1 >> {DRAWN}")
    whole = [one.get_attribute("d") for one in page.locator(DRAWN).all()[:2]]
    box = page.locator(".plot").first.bounding_box()
    assert box
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] / 2, middle)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.75, middle, steps=4)
    assert page.locator("rect.brush").count() == 1
    page.mouse.up()
    zoomed = [one.get_attribute("d") for one in page.locator(DRAWN).all()[:2]]
    assert all(
        a and b and a.count("L") < b.count("L") / 2 for a, b in zip(zoomed, whole, strict=True)
    )
    start = page.get_by_label("From").input_value()
    assert start.startswith("2026-05")
    assert f"from={start}" in page.url
    page.reload()
    page.wait_for_selector(f".card >> nth=1 >> {DRAWN}")
    assert page.locator(DRAWN).first.get_attribute("d") == zoomed[0]
    page.get_by_role("button", name="Whole history").click()
    assert page.locator(DRAWN).first.get_attribute("d") == whole[0]
    assert "from=" not in page.url


def test_commits_and_ranges_link_to_the_forge(watched: Watched, tmp_path: Path) -> None:
    site = write_site(replace(year(), forge="https://github.com/octo/models"), tmp_path / "site")
    page = watched.open(site / "index.html")
    compare = "https://github.com/octo/models/compare/ee0fd9af00...8c47536000"
    assert page.locator(f".moved a[href='{compare}']").count() == 1
    page = watched.open(page_of(site, "encoder"))
    page.wait_for_selector(".changes")
    assert page.locator(f".changes a[href='{compare}']").count() == 1
    commit = page.locator(".readout a").first.get_attribute("href") or ""
    assert commit.startswith("https://github.com/octo/models/commit/")
