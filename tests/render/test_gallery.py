"""The pictures in the documentation show the comment as it is, and it is short."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.comment_gallery import SCENES
from perfci.render.markdown import LIMIT, render_comment
from perfci.render.report_json import read_report, render_json

FOLDER = Path(__file__).parents[2] / "docs" / "images" / "comments"
LONGEST = {"all-quiet": 4, "improvements": 9, "one-regression": 8, "noisy-machine": 8, "crashed": 8}
"""Lines before the first fold."""


@pytest.mark.parametrize("name", SCENES)
def test_the_gallery_shows_the_comment_as_it_is(name: str) -> None:
    text = render_comment(SCENES[name]())
    assert (FOLDER / f"{name}.md").read_text(encoding="utf-8") == text


@pytest.mark.parametrize("name", SCENES)
def test_the_gallerys_reports_could_have_been_measured(name: str) -> None:
    for report in SCENES[name]():
        text = render_json(report)
        assert json.loads(render_json(read_report(text))) == json.loads(text)


@pytest.mark.parametrize("name", SCENES)
def test_before_the_first_fold_there_is_little_to_read(name: str) -> None:
    text = render_comment(SCENES[name]())
    open_part = text.split("<details>")[0].strip().splitlines()
    assert len(open_part) <= LONGEST.get(name, 25)
    assert len(text) <= LIMIT
