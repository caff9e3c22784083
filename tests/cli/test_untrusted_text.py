"""Every command, in a project whose every text is hostile: nothing of it reaches a terminal raw."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator
from dataclasses import replace

import click
import pytest

from perfci.baselines import BaselineStore
from perfci.cli.main import cli
from perfci.history.store import open_history
from perfci.model.run import Environment
from perfci.report.clean import clean_json
from perfci.report.exporters.json import render as render_json
from tests.baselines.runs import run
from tests.builders.project import NOISE_PASSES, Project
from tests.builders.recorded import recorded
from tests.builders.simulated import Simulated
from tests.report.examples import hostile_report
from tests.report.test_clean import commands
from tests.verdict.shards import paired, shard

BAD = "\x1b]0;t\x07\x1b[2K\n::error file=x::y\r::add-mask::z ##[error]w\u202e\u200b\x9b1m\u2028end"
"""What a terminal obeys, what a runner obeys, and what nobody sees."""
KEY = "here-1a2b"
BAD_FILE = "bench_##[error]\x1b]0;t\x07\u202e.py"

BENCHMARKS = f"""\
import sys
import perfci

BAD = {BAD!r}
print(BAD, flush=True)
sys.stderr.write(BAD)

@perfci.benchmark
def good():
    print(BAD, flush=True)
    return lambda: sum(range(500))

@perfci.benchmark
def bad():
    print(BAD, flush=True)
    raise RuntimeError(BAD)

@perfci.benchmark(skip=BAD)
def skipped():
    return int
"""
REPORTS = ("terminal", "markdown", "json", "junit")
COMMANDS: dict[str, tuple[tuple[str, ...], ...]] = {
    "compare": (
        ("compare", "HEAD~1", "HEAD", "--rounds", "2", "-v", "--record", "--history", "new.db"),
        ("compare", BAD, "HEAD"),
        ("compare", "--config", BAD),
        ("compare", "-k", BAD),
        ("compare", f"--{BAD}"),
    ),
    "check": (("check", "HEAD", "--rounds", "2"),),
    "run": (("run", "HEAD", "--rounds", "2", "--record", "--history", "new.db"), ("run", BAD)),
    "list": (("list",), ("list", "--json"), ("list", "--config", "bad.toml")),
    "nightly": (
        ("nightly", "--budget", "8s", "--runner", BAD, "--history", "night.db"),
        ("nightly", BAD),
    ),
    "history import": (("history", "import", "bad.jsonl", BAD, "--history", "imported.db"),
                       ("history", "import", "bad.jsonl", "--history", "imported.db")),
    "history export": (("history", "export"),),
    "history acknowledge": (("history", "acknowledge", BAD),),
    "trend": (("trend", "--no-remember", "--json", "/dev/stdout"),
              ("trend", "--no-remember", "--markdown", "/dev/stdout")),
    "explain": (
        ("explain", "HEAD~1", "HEAD", "-q"),
        ("explain", "bad.json"),
        ("explain", BAD, "HEAD", "-k", BAD),
    ),
    "bisect": (
        ("bisect", "HEAD~1..HEAD", "--budget", "8s", "-k", "good", "--json", "-"),
        ("bisect", "HEAD~1..HEAD", "--metric", BAD, "--budget", "8s"),
        ("bisect", BAD),
        ("bisect", f"{BAD}..HEAD"),
    ),
    "calibrate": (("calibrate", "HEAD", "--budget", "6s", "-k", "good"),),
    "baseline update": (("baseline", "update", "HEAD", "--rounds", "2"),),
    "baseline list": (("baseline", "list"),),
    "baseline show": (("baseline", "show", BAD), ("baseline", "show", "none")),
    "baseline diff": (("baseline", "diff", KEY, "there-1a2b"), ("baseline", "diff", KEY, BAD)),
    "baseline remove": (("baseline", "remove", KEY, BAD), ("baseline", "remove", BAD)),
    "report": tuple(("report", "bad.json", "-v", "--format", form) for form in REPORTS),
    "merge": (("merge", "one.json", "two.json", "--json", f"{BAD[-6:]}.json"),),
    "comment": (("comment", "bad.json", "--body-file", "body.md"),
                ("comment", "--unreadable", BAD, "--no-check")),
    "init": (("init", "--github", "--benchmarks", BAD), ("init",)),
    "doctor": (("doctor", "--python", BAD), ("doctor",)),
}  # fmt: skip
"""What each command is called with. One that is missing here is a test that fails."""


def leaves(group: click.Group, before: str = "") -> Iterator[str]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from leaves(command, f"{before}{name} ")
        else:
            yield f"{before}{name}"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Project:
    folder = tmp_path_factory.mktemp("hostile")
    made = Project(folder / "project", Simulated())
    made.write("pyproject.toml", (made.folder / "pyproject.toml").read_text() + NOISE_PASSES)
    made.write("benchmarks/bench_good.py", BENCHMARKS)
    made.write(f"benchmarks/{BAD_FILE}", f"raise ImportError({BAD!r})\n")
    made.write("bad.toml", f"[tool.perfci]\n{json.dumps(BAD)} = {json.dumps(BAD)}\n")
    made.git("config", "user.name", BAD.replace("\n", ""))
    made.git("checkout", "--quiet", "-b", "b\u202e\u200bx")
    made.commit(BAD)
    made.commit(f"subject {BAD}\n\n{BAD}")
    bad = recorded(1, Environment(BAD, {BAD: BAD}), subject=BAD, branch=BAD, runner=BAD, source=BAD)
    points = tuple(one._replace(case=BAD, metric=BAD, unit=BAD) for one in bad.points[:1])
    nights = [replace(bad, points=points, source_hashes={}, failed={BAD: BAD})]
    nights += [
        replace(
            nights[0], id=f"{BAD}{number}", sha=f"{number:040x}", position=number, branch="main"
        )
        for number in range(2, 20)
    ]
    with open_history(str(made.folder / "bad.db")) as history:
        history.record(nights)
    made.perfci("history", "export", "bad.jsonl", "--history", "bad.db")
    exported = made.folder / "bad.jsonl"
    exported.write_text(f"{exported.read_text()}{BAD}\n")
    (made.folder / "bad.json").write_text(render_json(hostile_report(BAD)))
    for number, name in ((1, "one"), (2, "two")):
        part = shard(number, 2, paired("a"), environment=Environment(BAD, {BAD: BAD}))
        (made.folder / f"{name}.json").write_text(render_json(part))
    (made.folder / "event.json").write_text(
        json.dumps(
            {
                "workflow_run": {
                    "event": BAD, "head_sha": BAD, "head_branch": BAD,
                    "head_repository": {"full_name": BAD, "owner": {"login": BAD}},
                }
            }
        )
    )  # fmt: skip
    store = BaselineStore(made.folder / "baselines")
    for key, fact in ((KEY, BAD), ("there-1a2b", f"{BAD}!")):
        store.save_run(run(BAD, environment=Environment(key, {BAD: fact}), sha=BAD), BAD)
    odd = made.folder / "baselines" / BAD.replace("/", "_")
    odd.mkdir()
    (odd / "environment.json").write_text(json.dumps({"key": odd.name, "facts": {BAD: BAD}}))
    return made


def unseen(text: str) -> set[str]:
    return {one for one in text if one != "\n" and unicodedata.category(one)[0] in "CZ"} - {
        " ",
        "\xa0",
    }


def test_every_command_is_among_them() -> None:
    assert set(leaves(cli)) == set(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_nothing_it_prints_is_obeyed_or_unseen(hostile: Project, command: str) -> None:
    printed = []
    for arguments in COMMANDS[command]:
        # a file's name for standard output is that of the process
        own = "/dev/stdout" in arguments
        done = (hostile.process if own else hostile.perfci)(
            *arguments,
            PERFCI_HISTORY="bad.db",
            GITHUB_EVENT_PATH="event.json",
            GITHUB_REPOSITORY=BAD,
            PERFCI_ALLOW_TOKEN="1",
            GITHUB_TOKEN="x",
        )
        printed.append(done.text)
        assert "a bug in perfci" not in done.text, done.text
        assert not own or done.out, arguments
        for said in (done.out, done.err):
            assert commands(said) == [], arguments
            assert unseen(said) == set(), (arguments, said)
    assert any(printed)


def test_what_a_program_reads_is_what_was_there(hostile: Project) -> None:
    done = hostile.perfci("report", "bad.json", "--format", "json")
    assert json.loads(done.out)["results"][0]["case"] == BAD
    lines = hostile.perfci("history", "export", "--history", "bad.db").out.splitlines()
    assert BAD in {json.loads(line).get("record", {}).get("subject") for line in lines}


def test_json_reads_as_before() -> None:
    values = {f"{BAD}{chr(0x7F)}{chr(0xE0041)}{chr(0xDC80)}ä🚀": ["##[", "#", {"a": [1]}]}
    text = clean_json(json.dumps(values, ensure_ascii=False, indent=1))
    assert json.loads(text) == values
    assert unseen(text) == set()
    assert commands(text) == []
    assert "ä🚀" in text
