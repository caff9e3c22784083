"""A calibration in every format: the one thing first, nothing of a stranger's let through."""

from __future__ import annotations

import tomllib
from dataclasses import replace

import pytest
from rich.cells import cell_len

from perfci.calibrate import Calibration
from perfci.config.loading import parse_config
from perfci.model.codec import CodecError, decode
from perfci.report.calibration import (
    answers,
    blind_text,
    headline,
    promise_text,
    render_calibration,
    render_calibration_json,
    render_calibration_markdown,
    toml_lines,
)
from tests.report.calibrations import ENCODER, everything, seen
from tests.report.hostile import NAMES
from tests.report.rendered import with_cmark_gfm


@pytest.mark.parametrize("width", [80, 120])
def test_the_terminal_says_first_what_this_machine_sees(width: int) -> None:
    text = render_calibration(everything(), width, color=False)
    first = " ".join(text.split("\n\n", maxsplit=1)[0].split())
    assert f"this machine sees 1.3 % on {ENCODER}; 1 case is bimodal" in first
    assert "don't rely on this: the promise was not kept" in first
    assert "\x1b" not in text
    assert max(map(cell_len, text.splitlines())) <= width


def test_the_terminal_shows_modes_settings_promise_and_what_to_write() -> None:
    text = " ".join(render_calibration(everything(), 120, color=False).split())
    assert "two modes: 400 µs in 75 % of workers, 520 µs (+30.0 %) in 25 %" in text
    assert "spread without it × 2.4 (1.3 to 4.4): helps" in text
    assert "(0.6 to 2): unclear" in text
    assert "left out: no time for it" in text
    assert "NOT KEPT: promised 2.5 %, injected 2.5 % into latency_p50, found in 0 of 1 case" in text
    assert "1 false alarm in 8 comparisons" in text
    assert "[tool.perfci] max_rounds = 34" in text
    assert "cold_start's threshold in 1 case" in text
    assert "96 rounds in 2 min 28 s of 2 min 30 s" in text


def test_the_terminal_says_what_its_columns_are() -> None:
    text = " ".join(render_calibration(everything(), 120, color=False).split())
    assert "latency_p50, the median latency of one call: case pairs spread" in text
    assert "promises: the same, where the spread is as large as it may be" in text


def test_the_lines_to_paste_come_after_their_file() -> None:
    text = render_calibration(everything(), 120, color=False)
    assert "suggested for pyproject.toml (paste what follows):" in text


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


def test_what_a_gate_finds_is_said_first_and_a_blind_gate_is_named() -> None:
    rows = (
        seen("encoder", detectable=0.06, sees_threshold=False, spread=0.018,
             rounds_5=9, rounds_2=26, rounds_1=83),
        seen("decoder", detectable=0.02),
        seen("encoder", "cold_start", detectable=0.85, threshold=0.1, sees_threshold=False),
        seen("encoder", "compile_time", detectable=0.9, gate="warn", sees_threshold=False),
    )  # fmt: skip
    calibration = replace(everything(), seen=rows)
    assert answers(calibration) == (
        (
            "encoder: a slow-down of 6 % or more is found (19 runs of 20); its gate is 5 %, "
            "which is blind here"
        ),
        "  rounds to see 5 %: 9, 2 %: 26, 1 %: 83 (noise of one round: 1.8 %)",
        "decoder: a slow-down of 2 % or more is found (19 runs of 20); its gate is 5 %",
        "  rounds to see 5 %: 7, 2 %: 10, 1 %: 24 (noise of one round: 0.6 %)",
        "encoder cold_start: only +85 % would be seen; its gate of 10 % is blind here",
    )
    assert answers(replace(calibration, seen=())) == ()
    text = render_calibration(calibration, 120, color=False)
    assert text.index("19 runs of 20") < text.index("the median latency of one call")


def test_nothing_known_is_said_as_that() -> None:
    assert headline(replace(everything(), seen=())) == "this machine sees nothing yet"


def test_a_promise_that_was_not_tested_says_why() -> None:
    calibration = everything()
    untested = replace(calibration.promise, status="not_checked", reason="interrupted")
    text = promise_text(replace(calibration, promise=untested))
    assert text == "not tested: interrupted"


def test_the_toml_is_what_the_configuration_reads() -> None:
    text = toml_lines(everything())
    assert "own" not in tomllib.loads(text)["tool"]["perfci"]["thresholds"]
    config = parse_config(text, "pyproject.toml")
    assert config.settings.max_rounds == 34
    assert config.policy.thresholds == {"decoder": {"latency_p50": 0.08}}
    own = toml_lines(replace(everything(), configuration="perfci.toml"))
    assert parse_config(own, "perfci.toml") == config


def test_the_json_is_read_back_as_it_was() -> None:
    text = render_calibration_json(everything())
    assert text.startswith('{\n  "schema": "perfci.calibration/1"')
    assert decode(text, Calibration) == everything()
    with pytest.raises(CodecError):
        decode(text.replace('"promise"', '"promse"'), Calibration)


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
    assert "NOT KEPT" in page.everything
    assert "max_rounds = 34" in page.everything
    assert page.tags.count("table") == 3
