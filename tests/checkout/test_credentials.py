"""Credentials that git keeps where a benchmark can read them."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfci.errors import EXIT_PASS, EXIT_USAGE
from perfci.measure.machine.isolation import git_secrets
from tests.builders.project import Project

HEADER = "AUTHORIZATION: basic eC1hY2Nlc3MtdG9rZW46c2VjcmV0"
URL = "https://github.com/"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (f"http.{URL}.extraheader", HEADER),
        ("http.extraHeader", "PRIVATE-TOKEN: secret"),
        ("remote.origin.url", "https://x-access-token:secret@github.com/a/b"),
        ("remote.origin.pushurl", "https://ghs_secret@github.com/a/b"),
        ("url.https://x-access-token:secret@github.com/.insteadOf", URL),
        ("submodule.lib.url", f"https://{'s' * 40}@example.org/lib"),
    ],
)
def test_a_setting_that_holds_one(project: Project, name: str, value: str) -> None:
    project.git("config", name, value)
    (found,) = git_secrets(project.folder).settings
    assert found.endswith(" in .git/config")
    assert "secret" not in found
    assert "ssss" not in found


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (f"http.{URL}.extraheader", ""),
        ("http.extraheader", "X-Trace: 1"),
        ("remote.origin.url", "https://someone@dev.azure.com/a/b"),
        ("remote.origin.url", "git@github.com:a/b"),
        ("remote.origin.url", "https://github.com/a/b@c:d"),
        ("credential.helper", "!gh auth git-credential"),
    ],
)
def test_a_setting_that_holds_none(project: Project, name: str, value: str) -> None:
    project.git("config", name, value)
    assert git_secrets(project.folder).settings == ()
    assert git_secrets(project.folder).helpers == ()


@pytest.mark.parametrize("condition", ["{}/.git", "{}/.git/worktrees/*", "/github/workspace/.git"])
def test_checkout_keeps_it_in_another_file_from_v6_on(
    project: Project, tmp_path: Path, condition: str
) -> None:
    kept = tmp_path / "git-credentials-1.config"
    kept.write_text(f'[http "{URL}"]\n\textraheader = {HEADER}\n')
    project.git("config", f"includeIf.gitdir:{condition.format(project.folder)}.path", str(kept))
    assert git_secrets(project.folder).settings == (f"http.{URL}.extraheader in {kept}",)


def test_a_file_that_is_gone_or_includes_itself_ends_nothing(
    project: Project, tmp_path: Path
) -> None:
    around = tmp_path / "around.config"
    around.write_text(f'[includeIf "gitdir:/nowhere"]\n\tpath = {around}\n[user]\n\tname = a\n')
    project.git("config", "include.path", "../../gone.config")
    project.git("config", "includeIf.gitdir:/elsewhere.path", str(around))
    assert git_secrets(project.folder).settings == ()


def test_helpers_that_keep_what_others_can_read(project: Project) -> None:
    project.git("config", "credential.helper", "store --file=/tmp/x")
    project.git("config", f"credential.{URL}.helper", "cache")
    assert git_secrets(project.folder).helpers == ("store", "cache")
    done = project.perfci("doctor")
    (line,) = (line for line in done.out.splitlines() if " git's credentials: " in line)
    assert line.startswith("worse")
    assert "store, cache" in line


def test_nothing_is_measured_beside_it(project: Project) -> None:
    project.counting(1_000)
    trace = project.folder.parent / "trace"
    project.write("benchmarks/bench_trace.py", f"open({str(trace)!r}, 'w')\n")
    project.commit()
    project.git("config", f"http.{URL}.extraheader", HEADER)
    done = project.perfci("list").without_traceback()
    assert done.code == EXIT_USAGE
    assert "[token-in-git]" in done.err
    assert f"http.{URL}.extraheader in .git/config" in done.err
    assert "persist-credentials: false" in done.err
    assert HEADER.rsplit(maxsplit=1)[-1] not in done.text
    assert not trace.exists()
    doctor = project.perfci("doctor")
    (line,) = (line for line in doctor.out.splitlines() if " git's credentials: " in line)
    assert line.startswith(" STOP")
    assert HEADER.rsplit(maxsplit=1)[-1] not in doctor.text


def test_whoever_trusts_both_sides_says_so(project: Project) -> None:
    project.counting(1_000)
    project.commit()
    project.git("config", f"http.{URL}.extraheader", HEADER)
    assert project.perfci("list", "--allow-token").code == EXIT_PASS
