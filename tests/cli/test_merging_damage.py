"""Merging reports of other machines: damage is reported as damage, and nothing is lost silently."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from perfci.errors import EXIT_OUTSIDE, EXIT_REGRESSION
from perfci.model.finding import stated
from perfci.model.report import Report, Verdict
from perfci.model.run import Environment
from perfci.report.exporters.json import render as render_json
from perfci.report.reading import read_report
from tests.builders.project import Done, Project
from tests.verdict.shards import paired, shard

OTHER = Environment("other-key", {"cpu": "other"})
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
    return project.perfci("merge", *files, "--json", "m.json", "--csv", "out/m.csv")


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda plain: plain["timing"].update(measured_s=1e308), "timing.measured_s is 1e+308"),
        (lambda plain: plain["timing"].update(rounds=(1 << 63) - 1), "timing.rounds is"),
        (in_all_rows("df", 0.0), "df is 0"),
        (in_all_rows("df", 5e-324), "df is 4.94066e-324"),
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


@pytest.mark.parametrize(
    "name", ["ratio_hi", "threshold", "p", "cohens_d", "welch_p", "detectable"]
)
@pytest.mark.parametrize("value", [0.0, 5e-324, 1e308])
def test_no_number_that_is_read_makes_merging_fail(
    project: Project, name: str, value: float
) -> None:
    parts = [shard(number, 2, paired(f"case-{number}")) for number in (1, 2)]
    done = merged(project, *parts, damage=in_all_rows(name, value)).without_traceback()
    assert "[internal]" not in done.err


def test_an_environment_that_cannot_be_written_keeps_no_other_back(project: Project) -> None:
    failing = Verdict("fail", (stated("a: latency_p50"),))
    reports = [
        shard(1, 1, paired("a", 1.2), verdict=failing),
        shard(1, 1, paired("a"), environment=OTHER),
    ]
    first = f"m.{reports[0].environment.key}.json"
    (project.folder / first).symlink_to("/dev/full")
    done = merged(project, *reports).without_traceback()
    assert done.code == EXIT_OUTSIDE
    assert f"{first} can't be written" in done.err
    assert "perfci: fail — 1 regression" in done.err
    assert "perfci: pass — no regression" in done.err
    assert done.out.split() == ["m.other-key.json"]
    assert (project.folder / "out" / "m.other-key.csv").exists()
    (project.folder / first).unlink()
    assert merged(project, *reports).code == EXIT_REGRESSION


def test_what_was_missing_is_still_missing_when_merged_again(project: Project) -> None:
    merged(project, shard(1, 2, paired("a")))
    text = (project.folder / "m.json").read_text(encoding="utf-8")
    report = read_report(text)
    assert report.missing == ("2/2",)
    done = merged(project, report)
    assert done.code == 3
    assert "incomplete: shard 2 of 2 is missing" in done.err


def test_a_pipe_as_output_is_refused_before_anything_is_read(project: Project) -> None:
    os.mkfifo(project.folder / "m.json")
    done = merged(project, shard(1, 1, paired("a")))
    assert done.code == EXIT_OUTSIDE
    assert "no regular file" in done.err


def test_the_folder_is_as_it_was_where_a_link_leads_nowhere(project: Project) -> None:
    link: Path = project.folder / "m.json"
    link.symlink_to("there.json")
    assert merged(project, shard(1, 1, paired("a"))).code == 0
    assert link.is_symlink()
    assert (project.folder / "there.json").exists()
