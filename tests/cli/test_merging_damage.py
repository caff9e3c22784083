"""Merging reports of other machines: damage is reported as damage, and nothing is lost silently."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from perfci.errors import EXIT_OUTSIDE
from perfci.model.report import Report
from perfci.report.exporters.json import render as render_json
from perfci.report.reading import read_report
from tests.builders.project import Done, Project
from tests.verdict.shards import paired, shard

Damage = Callable[[dict[str, Any]], None]


def in_all_rows(name: str, value: float) -> Damage:
    def damage(plain: dict[str, Any]) -> None:
        for row in plain["results"]:
            row[name] = value

    return damage


def merged(project: Project, *reports: Report, damage: Damage | None = None) -> Done:
    files = []
    for number, report in enumerate(reports):
        plain = json.loads(render_json(report))
        if damage:
            damage(plain)
        path = project.folder.parent / f"part-{number}.json"
        path.write_text(json.dumps(plain), encoding="utf-8")
        files.append(str(path))
    return project.perfci("merge", *files, "--json", "m.json", "--junit", "out/m.xml")


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda plain: plain["timing"].update(measured_s=1e308), "measured_s took 1e+308"),
        (lambda plain: plain["timing"].update(rounds=(1 << 63) - 1), "rounds took"),
        (in_all_rows("df", 5e-324), "df is not a number"),
    ],
)
def test_numbers_that_cannot_be_merged_are_damage(
    project: Project, damage: Damage, said: str
) -> None:
    parts = [shard(number, 2, paired(f"case-{number}")) for number in (1, 2)]
    done = merged(project, *parts, damage=damage).without_traceback()
    assert done.code == EXIT_OUTSIDE
    assert said in done.err
    assert not (project.folder / "m.json").exists()


def test_what_was_missing_is_still_missing_when_merged_again(project: Project) -> None:
    merged(project, shard(1, 2, paired("a")))
    text = (project.folder / "m.json").read_text(encoding="utf-8")
    report = read_report(text)
    assert report.missing == ("2/2",)
    done = merged(project, report)
    assert done.code == 3
    assert "incomplete: shard 2 of 2 is missing" in done.err
