"""A release is refused while its version, its changelog or the repository's address is wrong."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.release import MENTIONING, ROOT, faults

FILES = ("perfci/version.py", "CHANGELOG.md", *MENTIONING)


@pytest.fixture
def ready(tmp_path: Path) -> Path:
    """A copy of what a release looks at, made ready for 0.1.0."""
    for name in FILES:
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, file)
        file.write_text(file.read_text().replace("OWNER/", "somebody/"))
    change(tmp_path / "CHANGELOG.md", "## 0.1.0 (unreleased)", "## 0.1.0 (2026-01-31)")
    return tmp_path


def change(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


def test_what_is_ready_has_no_fault(ready: Path) -> None:
    assert faults(ready, "0.1.0") == []


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("perfci/version.py", '"0.1.0"', '"0.1.1"'),
        ("CHANGELOG.md", "(2026-01-31)", "(unreleased)"),
        ("CHANGELOG.md", "## 0.1.0", "## 0.2.0"),
        (".github/CODEOWNERS", "somebody/", "OWNER/"),
    ],
)
def test_each_fault_is_the_only_one_named(ready: Path, name: str, old: str, new: str) -> None:
    change(ready / name, old, new)
    (fault,) = faults(ready, "0.1.0")
    assert fault.startswith(name)


def test_a_tag_that_is_no_version_is_refused(ready: Path) -> None:
    assert faults(ready, "latest")[0] == "'latest' is no version such as 1.2.3 or 1.2.3rc1"


def test_this_checkout_says_what_it_lacks_without_anything_installed() -> None:
    done = subprocess.run(
        [sys.executable, "-S", "-m", "tests.release", "9.9.9"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (1, "")
    assert "not 9.9.9" in done.stdout


def test_the_address_is_known_to_the_release_wherever_it_is_a_placeholder() -> None:
    done = subprocess.run(
        ["git", "grep", "-lE", "github.com/OWNER|OWNER/perfci|@OWNER/", "--", ".", ":!tests"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert set(done.stdout.split()) <= set(MENTIONING)


def test_the_index_shows_what_somebody_looks_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert {"Source", "Documentation", "Issues", "Changelog"} <= set(project["urls"])
    assert project["authors"]
    assert project["keywords"]
    pythons = {one for one in project["classifiers"] if "Python :: 3." in one}
    assert {one.rpartition(" ")[2] for one in pythons} == {"3.11", "3.12", "3.13"}
