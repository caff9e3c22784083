"""An environment that ends on a runner where another begins is an event of the environment's."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from perfci.report.site.pages import render_site
from perfci.report.trend import render_trend_markdown, trend_json, trend_lines
from perfci.trend.health import replacements
from perfci.trend.series import Series, SeriesKey, Timeline
from tests.report.hostile import NAMES
from tests.report.site.histories import quiet_trend
from tests.trend.histories import run, series


def timeline(key: str, nights: range, *, runner: str = "bench-1", **facts: str) -> Timeline:
    runs = tuple(run(number, source="nightly", runner=runner) for number in nights)
    return Timeline(key, runs, {"cpu": "EPYC", "note_kernel": key} | facts)


def lines(*some: Timeline) -> dict[str, Timeline]:
    return {one.environment: one for one in some}


def measured(environment: str, level: float, case: str = "encoder") -> Series:
    return series(np.full(20, level), key=SeriesKey(environment, case, "latency_p50"))


OLD = timeline("old", range(20), driver="550")
NEW = timeline("new", range(20, 40), driver="560")


def test_a_new_driver_is_told_with_what_differs_and_by_how_much() -> None:
    many = (
        measured("old", 1.0),
        measured("new", 1.1),
        measured("old", 2.0, "decoder"),
        measured("new", 2.4, "decoder"),
        measured("new", 7.0, "added"),
    )
    (one,) = replacements(lines(OLD, NEW), many)
    assert (one.runner, one.before, one.after) == ("bench-1", "old", "new")
    assert one.at == NEW.runs[0].measured_at.replace("Z", "+00:00")
    assert one.facts == (("driver", "550", "560"),)
    assert one.series == 2
    assert one.median_cost == pytest.approx(1.15)


def test_environments_that_take_turns_or_share_no_runner_replace_none() -> None:
    turns = timeline("new", range(10, 40))
    elsewhere = timeline("new", range(20, 40), runner="bench-2")
    for other in (turns, elsewhere):
        assert replacements(lines(OLD, other), ()) == ()


def test_other_tools_runs_say_nothing_of_their_machines() -> None:
    imported = replace(NEW, runs=tuple(replace(one, source="asv") for one in NEW.runs))
    assert replacements(lines(OLD, imported), ()) == ()


def test_every_report_tells_it() -> None:
    found = replacements(lines(OLD, NEW), (measured("old", 1.0), measured("new", 1.25)))
    trend = replace(quiet_trend(), replacements=found)
    said = "bench-1: driver 550 → 560; over 1 series in both the median is +25.0 %"
    assert any(line.startswith("Environment replaced: ") for line in trend_lines(trend))
    assert said in render_trend_markdown(trend)
    assert said in dict(render_site(trend, {}))["index.html"].decode()
    assert '"median_cost": 1.25' in trend_json(trend)


@pytest.mark.parametrize("name", NAMES)
def test_hostile_facts_stay_text(name: str) -> None:
    old = timeline("old", range(20), runner=name, **{f"x{name}": name})
    found = replacements(lines(old, timeline("new", range(20, 40), runner=name)), ())
    page = dict(render_site(replace(quiet_trend(), replacements=found), {}))["index.html"].decode()
    assert "<script>" not in page.replace('<script src="assets/theme.js">', "")
    assert "<img" not in page
