"""A calibration in every format: the one thing first, nothing of a stranger's let through."""

from __future__ import annotations

from dataclasses import replace

import pytest
from rich.cells import cell_len

from perfci.calibrate import Calibration
from perfci.model.codec import CodecError, decode
from perfci.report.calibration import (
    blind_text,
    headline,
    render_calibration,
    render_calibration_json,
    render_calibration_markdown,
)
from tests.report.calibrations import ENCODER, everything, seen
from tests.report.hostile import NAMES
from tests.report.rendered import with_cmark_gfm


@pytest.mark.parametrize("width", [80, 120])
def test_the_terminal_says_first_what_this_machine_sees(width: int) -> None:
    text = render_calibration(everything(), width, color=False)
    first = " ".join(text.split("\n\n", maxsplit=1)[0].split())
    assert f"this machine sees 1.3 % on {ENCODER}; 1 case is bimodal" in first
    assert "don't rely on this: identical sides were called different" in first
    assert "\x1b" not in text
    assert max(map(cell_len, text.splitlines())) <= width


def test_the_terminal_shows_modes_what_disturbs_and_blind_gates() -> None:
    text = " ".join(render_calibration(everything(), 120, color=False).split())
    assert "two modes: 400 µs in 75 % of workers, 520 µs (+30.0 %) in 25 %" in text
    assert "Most disturbing: the core was busy, in 14 of 960 bursts." in text
    assert "1 false alarm in 4 comparisons" in text
    assert "cold_start's threshold in 1 case" in text
    assert "96 rounds in 2 min 28 s of 2 min 30 s" in text


def test_thresholds_that_nobody_knows_of_are_not_called_seen() -> None:
    unknown = seen("a", sees_threshold=None, detectable=None)
    nothing = replace(everything(), seen=(unknown,))
    assert blind_text(nothing) == (
        "Whether any threshold can be seen is not known: too little was measured."
    )
    assert "is not known" in blind_text(replace(nothing, seen=()))
    some = blind_text(replace(nothing, seen=(unknown, seen("b"))))
    assert some == "Every threshold whose spread is known can be seen; of 1 it isn't known."


def test_verbose_shows_every_metric_of_every_case() -> None:
    assert "latency_p95" in render_calibration(everything(), 120, color=False)
    short = render_calibration(everything(), 120, color=False).count(ENCODER)
    assert render_calibration(everything(), 120, color=False, verbose=True).count(ENCODER) > short


def test_a_range_is_told_where_cases_differ() -> None:
    rows = (seen("a"), seen("b", detectable=0.031))
    calibration = replace(everything(), seen=rows)
    assert headline(calibration).startswith(
        "this machine sees 1.3 % at best (a), 3.1 % at worst (b) (5 to 20"
    )


def test_nothing_known_is_said_as_that() -> None:
    assert headline(replace(everything(), seen=())) == "this machine sees nothing yet"


def test_the_json_is_read_back_as_it_was() -> None:
    text = render_calibration_json(everything())
    assert text.startswith('{\n  "schema": "perfci.calibration/1"')
    assert decode(text, Calibration) == everything()
    with pytest.raises(CodecError):
        decode(text.replace('"disturbance"', '"disturbances"'), Calibration)


def test_json_refuses_what_is_not_finite() -> None:
    broken = replace(everything(), seen=(seen("a", spread=float("inf")),))
    with pytest.raises(CodecError):
        render_calibration_json(broken)


def _without_code(tags: list[str]) -> list[str]:
    return [tag for tag in tags if tag != "code"]


@pytest.mark.parametrize("name", list(filter(None, NAMES)))
def test_a_hostile_name_stays_text(name: str) -> None:
    calibration = everything(case=name, text=name)
    page = with_cmark_gfm(render_calibration_markdown(calibration))
    innocent = with_cmark_gfm(render_calibration_markdown(everything(case="x", text="x")))
    # text between backticks is code, whoever wrote it
    assert _without_code(page.tags) == _without_code(innocent.tags)
    assert page.within_code <= {"wbr"}
    assert len(page.cells) == len(innocent.cells)
    terminal = render_calibration(calibration, 100, color=False)
    assert "\x1b" not in terminal
    assert "\u202e" not in terminal
    render_calibration_json(calibration)


def test_markdown_says_the_same_as_the_terminal() -> None:
    page = with_cmark_gfm(render_calibration_markdown(everything()))
    assert "this machine sees 1.3 %" in page.everything
    assert "Most disturbing" in page.everything
    assert page.tags.count("table") == 2
