"""What the trend report looks like: a made-up year, in three widths and both colours.

    python benchmarks/trend/pictures.py [--out docs/images/trend]

No number in the pictures was measured: they are of the history that the tests of the site use.
Needs playwright and a Chromium on this machine.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, ViewportSize, sync_playwright

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT))

from perfci.report.site.pages import render_site  # noqa: E402
from tests.report.site.histories import distributions, year  # noqa: E402

WIDTHS = {360: 1200, 800: 1100, 1440: 1000}
BENCHMARK = "encoder"


def take(browser: Browser, page: Path, name: str, out: Path) -> None:
    """Write a picture of ``page`` for each width and colour scheme."""
    for width, height in WIDTHS.items():
        for scheme in ("light", "dark"):
            size: ViewportSize = {"width": width, "height": height}
            context = browser.new_context(viewport=size, color_scheme=scheme)
            opened = context.new_page()
            opened.goto(page.as_uri())
            opened.wait_for_selector("#results tbody tr, .changes")
            if moved := opened.locator(".card.worse").all():
                moved[0].locator(".compare summary").click()
                moved[0].locator(".plot").focus()
                opened.keyboard.press("PageUp")
            opened.evaluate("window.scrollTo(0, 0)")
            opened.screenshot(path=out / f"{name}-{width}-{scheme}.png")
            context.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "images" / "trend")
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    trend = year()
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright:
        site = Path(scratch)
        for name, content in render_site(trend, distributions(trend)):
            path = site / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        chromium = shutil.which("chromium") or shutil.which("google-chrome")
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        take(browser, site / "index.html", "overview", out)
        (page,) = (site / "benchmarks").glob(f"{BENCHMARK}-*.html")
        take(browser, page, "benchmark", out)
        browser.close()


if __name__ == "__main__":
    main()
