"""Data files: whatever a name holds, the script hands over exactly that, and nothing runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from perfci.report.site.data import script
from perfci.trend import Trend, benchmark_of
from perfci.trend.events import group_events
from tests.report.conftest import Watched
from tests.report.hostile import NAMES
from tests.report.site.conftest import write_site
from tests.report.site.histories import GPU, Shapes, change, quiet_trend, run, series, timeline


def hostile() -> Trend:
    """Return a trend in which every string is a stranger's."""
    shapes = Shapes(nights=12)
    names = (*NAMES, '"><img src=x onerror=pwned=1>', "';pwned=1;'", "__proto__", "javascript:1")
    nights = tuple(
        replace(run(row), subject=name, runner=name, id=f"run-{row}")
        for row, name in enumerate(names[:12])
    )
    lines = {GPU: replace(timeline(GPU, 12), runs=nights, facts={name: name for name in names})}
    all_series = tuple(
        series(f"{name}[{name}={name}]", shapes.step(1.0, 6, 1.2), metric=name, unit=name)
        for name in names
    )
    changes = tuple(
        replace(
            change(one, 6, 1.2, timelines=lines, status=status),
            id=one.key.metric, note=one.key.metric, at=one.key.metric,
        )
        for one, status in zip(all_series, ("new", "known", "acknowledged") * 99, strict=False)
    )  # fmt: skip
    alone = ((one,) for one in changes[3:])  # a row each, but for one event of three
    return replace(
        quiet_trend(),
        timelines=lines,
        series=all_series,
        changes=changes,
        events=tuple(
            event
            for some in (changes[:3], *alone)
            for event in group_events(some, all_series, lines)
        ),
        notes=names,
        releases={one.sha: (name,) for one, name in zip(nights, names[20:], strict=False)},
    )


def test_strangers_names_stay_text_in_the_browser(watched: Watched, tmp_path: Path) -> None:
    trend = hostile()
    site = write_site(trend, tmp_path / "site")
    page = watched.open(site / "index.html")
    page.wait_for_selector("#results tbody tr")
    page.get_by_role("button", name=f"Show {len(trend.series) - 12} more").click()
    assert page.locator("#results tbody tr").count() == len(trend.series)
    assert page.locator("img, iframe, [onerror]").count() == 0
    own = "[href^='benchmarks/'], [href='#words']"
    assert page.locator(f"main a:not({own})").count() == 0
    page.get_by_label("Search").fill("onerror=pwned=1")
    link = page.locator("#results a", has_text="onerror=pwned=1")
    link.first.click()
    page.wait_for_selector(".card.linked .changes")
    assert '"><img src=x onerror=pwned=1>' in page.locator(".card.linked h3").inner_text()
    assert page.locator("img, iframe, [onerror]").count() == 0
    assert page.evaluate("typeof pwned") == "undefined"
    assert page.evaluate("({}).polluted") is None


def test_no_file_of_the_site_leaves_it(tmp_path: Path) -> None:
    site = write_site(hostile(), tmp_path / "site")
    assert {path.name for path in tmp_path.iterdir()} == {"site"}
    folders = {"assets", "benchmarks", "data"}
    assert {path.name for path in site.iterdir()} == {*folders, "index.html"}
    assert len(list((site / "benchmarks").iterdir())) == len(
        {benchmark_of(one.key.case) for one in hostile().series}
    )


def test_not_a_number_is_no_script_error() -> None:
    assert script("a", "b", [float("nan"), float(np.inf)]) == b'perfciTrend("a","b",[null,null]);\n'
