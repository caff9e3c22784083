"""Untrusted texts that perfci prints are no commands to a runner of GitHub Actions."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from perfci.cli import main
from perfci.errors import EXIT_OUTSIDE, EXIT_USAGE, OutsideError
from perfci.model.run import Environment
from perfci.report.exporters.json import render as render_json
from tests.builders.project import Project
from tests.report.examples import hostile_report
from tests.report.test_clean import commands
from tests.verdict.shards import paired, shard

NAMES = ("##[add-mask]e", "x\n::add-mask::e\n", "\x1b[2K\r::error::x", "\u202e##[error]")


def told(folder: Path, name: str, text: str) -> str:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("part", ["1/2", ""])
def test_an_environments_key_in_an_error(
    project: Project, tmp_path: Path, name: str, part: str
) -> None:
    report = shard(1, 2, paired("a"), environment=Environment(name, {}), shard=part)
    files = [told(tmp_path, f"{number}.json", render_json(report)) for number in (1, 2)]
    done = project.perfci("merge", *files, "--json", "m.json").without_traceback()
    assert done.code == EXIT_USAGE
    assert commands(done.text) == []
    assert done.text.replace("\n", "").isprintable()


@pytest.mark.parametrize("name", NAMES)
def test_a_name_in_a_damaged_report(project: Project, tmp_path: Path, name: str) -> None:
    plain = json.loads(render_json(hostile_report("a")))
    plain["results"][0] |= {"case": name, "p": 5.0}
    done = project.perfci("report", told(tmp_path, "r.json", json.dumps(plain)))
    assert done.code == EXIT_OUTSIDE
    assert "p is 5" in done.err
    assert commands(done.text) == []


@pytest.mark.parametrize("name", NAMES)
def test_a_whole_report(project: Project, tmp_path: Path, name: str) -> None:
    report = replace(hostile_report(name), command="compare")
    path = told(tmp_path, "r.json", render_json(report))
    for form in ("terminal", "markdown", "json", "junit", "csv"):
        assert commands(project.perfci("report", path, "--format", form).text) == []


def ended(monkeypatch: pytest.MonkeyPatch, error: Exception) -> int:
    def fails(*_: object) -> None:
        raise error

    monkeypatch.setattr(main, "_invoke", fails)
    monkeypatch.setattr("signal.signal", lambda *_: None)
    with pytest.raises(SystemExit) as caught:
        main.main()
    assert isinstance(caught.value.code, int)
    return caught.value.code


def test_advice_keeps_its_lines(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    error = OutsideError("slug", "it failed:\n::error::x", "The end of its log:\n  ::x\n  y\x1b[1m")
    assert ended(monkeypatch, error) == EXIT_OUTSIDE
    said = "perfci: it failed:\n: :error::x\nThe end of its log:\n  : :x\n  y\n[slug]\n"
    assert capsys.readouterr().err == said


def test_a_bug_has_no_verdicts_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended(monkeypatch, RuntimeError("##[error]boom")) == EXIT_OUTSIDE
    said = capsys.readouterr().err
    assert "a bug in perfci: RuntimeError: ## [error]boom" in said
    assert "Please report it with these lines." in said
    assert "\n  File " in said
