"""Golden files, refreshed by one flag, and a browser with what went wrong in it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.lacking import lacking, needed

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_FOLDER = Path(__file__).parent.parent / "data" / "golden"


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compare a text with a golden file, or write it."""

    def compare(name: str, text: str) -> None:
        path = _FOLDER / name
        if request.config.getoption("--refresh-golden"):
            path.write_text(text, encoding="utf-8")
        assert text == path.read_text(encoding="utf-8")

    return compare


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A headless Chromium that is on this machine."""
    sync_api = needed("playwright.sync_api")
    found = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if found is None:
        lacking("no Chromium on this machine")
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        probe = tmp_path_factory.mktemp("probe") / "probe.html"
        probe.write_text("<title>read</title>")
        page = started.new_page()
        try:
            page.goto(probe.as_uri())
        except sync_api.Error as refused:
            lacking(f"{found} may not read files where tests write them: {refused.message}")
        page.close()
        yield started
        started.close()


class Watched:
    """A page, and what went wrong on it."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.trouble: list[str] = []
        self.asked: list[str] = []
        page.on("console", lambda said: self.trouble.append(said.text))
        page.on("pageerror", lambda error: self.trouble.append(str(error)))
        page.on("request", lambda request: self.asked.append(request.url))

    def open(self, path: Path) -> Page:
        """Open a file in a browser, from disk."""
        self.page.goto(path.as_uri())
        return self.page


@pytest.fixture
def watched(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Watched]:
    """A fresh page, 1440 px wide in light colours unless ``request.param`` says otherwise."""
    options: dict[str, Any] = getattr(request, "param", {})
    size = {"width": options.get("width", 1440), "height": 900}
    scheme, touch = options.get("scheme", "light"), options.get("touch", False)
    context = browser.new_context(viewport=size, color_scheme=scheme, has_touch=touch)
    made = Watched(context.new_page())
    yield made
    context.close()
    assert made.trouble == []
    assert [url for url in made.asked if not url.startswith(("file:", "data:"))] == []


_LEAVE_OUT_ROWS = """
    const seen = {};
    for (const row of document.querySelectorAll('tbody tr')) {
        const each = [row, ...row.querySelectorAll('*')];
        const kind = each.map((one) => [
            one.tagName, one.getAttribute('class'), one.getAttribute('style'),
            [...one.attributes].map((attribute) => attribute.name),
        ].join()).join(' ');
        seen[kind] = (seen[kind] || 0) + 1;
        if (seen[kind] > 3) row.setAttribute('data-left-out', '');
    }
"""
"""Mark what repeats three rows of the same elements, classes, styles and names of attributes."""


def axe_finds_nothing(watched: Watched) -> None:
    """Run axe-core on the page; its contrast rule has to have looked at something.

    Of rows of a kind it is given three: a year of them took it ten seconds.
    """
    axe = needed("axe_playwright_python.sync_playwright").Axe()
    assert watched.trouble == []
    watched.page.evaluate(f"() => {{{_LEAVE_OUT_ROWS}}}")
    found = axe.run(watched.page, context={"exclude": [["[data-left-out]"]]})
    watched.trouble.clear()  # axe tried to fetch the style sheet, and the page's policy said no
    assert found.violations_count == 0, found.generate_report()
    assert "color-contrast" in {one["id"] for one in found.response["passes"]}
