"""Busy reports in a real browser: short first, the rest folded, and nothing loaded unasked."""

from __future__ import annotations

import re
from dataclasses import replace
from operator import itemgetter
from pathlib import Path

import pytest

from perfci.trend import Change, Drift, Trend
from tests.lacking import needed
from tests.report.conftest import Watched
from tests.report.site.conftest import page_of, write_site
from tests.report.site.histories import (
    GPU,
    Shapes,
    change,
    quiet_trend,
    run,
    series,
    timeline,
    with_changes,
    year,
)

expect = needed("playwright.sync_api").expect
HEIGHT = 900
PARTS = 40


def busy() -> Trend:
    """Return a trend with many rows in every list."""
    shapes = Shapes()
    lines = {GPU: timeline(GPU, 365)}
    moved = [
        series(f"case_{n}[batch={n}]", shapes.step(1e-3, 60 + 6 * n, 1.1 + n / 100))
        for n in range(PARTS)
    ]
    changes: list[Change] = []
    for n, one in enumerate(moved):
        status = "new" if n % 2 else "known"
        changes.append(change(one, 60 + 6 * n, 1.1 + n / 100, timelines=lines, status=status))  # type: ignore[arg-type]
    wander = [series(f"drifts_{n}", shapes.quiet(1e-3)) for n in range(PARTS)]
    drifts = tuple(
        Drift(one.key, run(9).sha, 14, 14, 1.04, 1.02, 1.06, 0.001, worse=True) for one in wander
    )
    trend = replace(
        year(),
        timelines=lines,
        series=(*moved, *wander),
        drifts=drifts,
        notes=tuple(f"Note {n} is a sentence about the history." for n in range(PARTS)),
    )
    return with_changes(trend, *changes)


@pytest.mark.parametrize(
    "watched", [{"width": 1440}, {"width": 1100, "scheme": "dark"}], indirect=True
)
def test_a_busy_overview_takes_three_screens_and_folds_the_rest(
    watched: Watched, tmp_path: Path
) -> None:
    page = watched.open(write_site(busy(), tmp_path / "site") / "index.html")
    page.wait_for_selector("#results tbody tr")
    assert page.evaluate("document.documentElement.scrollHeight") <= 3 * HEIGHT
    folded = page.locator("section:has(#new-title) details.fold")
    assert folded.locator("h3").first.is_hidden()
    folded.locator("summary").first.click()
    assert folded.locator("h3").first.is_visible()


def test_a_long_list_of_series_is_loaded_when_it_is_used(watched: Watched, tmp_path: Path) -> None:
    site = write_site(quiet_trend(cases=5000, nights=8), tmp_path / "site")
    page = watched.open(site / "index.html")
    page.wait_for_selector("#more:visible")
    assert not any("search.js" in url for url in watched.asked)
    assert "List all 5,000 series" in page.locator("#more").inner_text()
    page.get_by_label("Search").fill("n=4999")
    expect(page.locator("#results tbody tr")).to_have_count(1)
    assert any("search.js" in url for url in watched.asked)


def test_a_chart_of_many_runs_draws_a_few_points_for_each_pixel(
    watched: Watched, tmp_path: Path
) -> None:
    values = Shapes(nights=8_000).quiet(1e-3)
    values[4_321] = values.max() * 1.01
    trend = replace(
        quiet_trend(nights=2),
        timelines={GPU: timeline(GPU, len(values))},
        series=(series("busy", values),),
    )
    page = watched.open(page_of(write_site(trend, tmp_path / "site"), "busy"))
    page.wait_for_selector("path.values")
    width = (page.locator(".plot").bounding_box() or {})["width"]
    drawn = page.locator("path.values").get_attribute("d") or ""
    points = [tuple(map(float, point.split())) for point in re.split("[ML]", drawn)[1:]]
    assert 2 * width < len(points) < 6 * width
    x, _ = min(points, key=itemgetter(1))
    assert x / width == pytest.approx(4_321 / len(values), abs=0.05)
