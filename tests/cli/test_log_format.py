"""``--log-format json``: standard error is one JSON object a line, of every command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import click

from perfci.cli.main import cli
from tests.cli.test_untrusted_text import leaves


def perfci(folder: Path, *arguments: str, **environment: str) -> tuple[int, str, list[dict]]:
    done = subprocess.run(
        [sys.executable, "-m", "perfci", *arguments],
        check=False, cwd=folder, capture_output=True, text=True, timeout=120,
        env=os.environ | environment,
    )  # fmt: skip
    return done.returncode, done.stdout, [json.loads(line) for line in done.stderr.splitlines()]


def test_every_command_takes_it() -> None:
    def found(name: str) -> click.Command:
        command: click.Command = cli
        for part in name.split():
            assert isinstance(command, click.Group)
            of_it = command.get_command(click.Context(command), part)
            assert of_it is not None
            command = of_it
        return command

    names = list(leaves(cli))
    assert len(names) > 20
    for name in names:
        assert any("--log-format" in one.opts for one in found(name).params), name


def test_a_command_begins_says_and_ends_in_lines_of_json(tmp_path: Path) -> None:
    code, out, log = perfci(tmp_path, "trend", "--history", "none.db", "--log-format", "json")
    assert code == 2
    assert out == ""
    assert [one["event"] for one in log] == ["begin", "error", "end"]
    assert {one["command"] for one in log} == {"trend"}
    assert log[1]["slug"]
    assert log[1]["advice"]
    assert log[2]["exit_code"] == 2
    assert log[2]["seconds"] >= 0


def test_hostile_text_stays_in_its_line(tmp_path: Path) -> None:
    bad = "\x1b]0;t\x07::error::x ##[error]\u2028y"
    (tmp_path / f"{bad}.json").write_text("{}")
    done = perfci(tmp_path, "history", "import", f"{bad}.json", PERFCI_LOG_FORMAT="json")
    code, _, log = done
    assert code != 0
    assert log[0]["command"] == "history import"
    assert "error::x" in log[1]["message"]
    assert "\x1b" not in log[1]["message"]
