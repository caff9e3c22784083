"""axe-core finds nothing to complain about, in either colours, with what folds unfolded."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.report.conftest import Watched, axe_finds_nothing
from tests.report.site.conftest import page_of

SCHEMES = [
    {"scheme": "light", "width": 1440},
    {"scheme": "dark", "width": 360},
]


@pytest.mark.parametrize("watched", SCHEMES, indirect=True)
def test_axe_finds_nothing_on_the_overview(watched: Watched, year_site: Path) -> None:
    page = watched.open(year_site / "index.html")
    page.wait_for_selector("#results tbody tr")
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    axe_finds_nothing(watched)


@pytest.mark.parametrize("watched", SCHEMES, indirect=True)
def test_axe_finds_nothing_on_a_benchmarks_page(watched: Watched, year_site: Path) -> None:
    page = watched.open(page_of(year_site, "encoder"))
    page.get_by_label("Search").fill("graph_breaks")  # one card, and its table: axe takes long
    page.locator("#found", has_text="1 of 8").wait_for()
    page.locator(".changes").wait_for()
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    page.locator("td", has_text="Pad the vocabulary").first.wait_for()
    axe_finds_nothing(watched)
