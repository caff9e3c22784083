"""docs/calibrate.md names the quiet settings that a calibration tries, and those it doesn't."""

from __future__ import annotations

import re
from dataclasses import fields

from perfci.commands.calibrate_parts import TRIED
from perfci.model.measuring import Quiet
from tests.docs.pages import page, section


def test_the_settings_that_are_tried_are_told_and_so_are_the_others() -> None:
    (item,) = re.findall(
        r"- \*\*settings\*\*:(.*?)\n\n", section(page("calibrate.md"), "## What it says"), re.DOTALL
    )
    tried, _, others = item.partition("(not ")
    assert re.findall(r"`(\w+)`", tried) == list(TRIED)
    untried = {one.name for one in fields(Quiet)} - set(TRIED)
    assert set(re.findall(r"`(\w+)`", others.partition(")")[0])) == untried
