"""The site's badge."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree as ET

from perfci.report.site.pages import render_site
from perfci.trend import Trend
from tests.report.site.histories import quiet_trend, year

SVG = "{http://www.w3.org/2000/svg}"


def test_the_badge_counts_what_is_worse_and_open() -> None:
    def said(trend: Trend) -> str:
        return ET.fromstring(dict(render_site(trend))["badge.svg"]).findtext(f"{SVG}title", "")

    assert said(year()) == "performance: 3 regressions"
    assert said(quiet_trend()) == "performance: no regression"
    assert said(replace(quiet_trend(), series=())) == "performance: no data"
