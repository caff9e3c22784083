"""What the tests of the site share: sites written to disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfci.report.site.pages import render_site
from perfci.trend import Trend
from tests.report.site.histories import year


def write_site(trend: Trend, folder: Path) -> Path:
    """Write the site of ``trend`` and return its folder."""
    for name, content in render_site(trend):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


@pytest.fixture(scope="session")
def year_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A year's site on disk."""
    return write_site(year(), tmp_path_factory.mktemp("site") / "trend")


def page_of(site: Path, benchmark: str) -> Path:
    """Return a benchmark's page."""
    (found,) = (site / "benchmarks").glob(f"{benchmark}-*.html")
    return found
