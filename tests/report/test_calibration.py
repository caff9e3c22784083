"""A calibration in every format: the one thing first, nothing of a stranger's let through."""

from __future__ import annotations

from dataclasses import replace

import pytest
from rich.cells import cell_len

from perfci.calibrate import Calibration
from perfci.model.codec import CodecError, decode
from perfci.report.calibration import render_calibration, render_calibration_json
from tests.report.calibrations import ENCODER, everything, seen
from tests.report.hostile import NAMES


@pytest.mark.parametrize("width", [80, 120])
def test_the_terminal_says_first_what_this_machine_sees(width: int) -> None:
    text = render_calibration(everything(), width, color=False)
    first = " ".join(text.split("\n\n", maxsplit=1)[0].split())
    assert f"this machine sees 1.3 % on {ENCODER}" in first
    assert "don't rely on this: identical sides were called different" in first
    assert "\x1b" not in text
    assert max(map(cell_len, text.splitlines())) <= width


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


@pytest.mark.parametrize("name", list(filter(None, NAMES)))
def test_a_hostile_name_stays_text(name: str) -> None:
    calibration = everything(case=name, text=name)
    terminal = render_calibration(calibration, 100, color=False)
    assert "\x1b" not in terminal
    assert "\u202e" not in terminal
    render_calibration_json(calibration)


def test_a_session_and_what_was_calibrated_are_counted_apart() -> None:
    calibration = everything()
    text = " ".join(render_calibration(calibration, 120, color=False).split())
    assert text.count("comparison") == 1
    assert f"one of the {calibration.comparisons} comparisons of a whole session" in text
    assert f"of the {len(calibration.seen)} metrics calibrated here" in text
