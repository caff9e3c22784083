""".ci/prepare on machines that lack what the tests need: PATH holds only what a case gives it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
THERE = ("git", "make", "c++", "chromium", "initdb")
APT = """\
#!/bin/sh
echo "$@" >> {log}
{then}
"""


def prepare(
    folder: Path, *there: str, user: int = 0, ci: str = "1", then: str = ""
) -> tuple[int, str, list[str]]:
    """Run it; return its code, what it printed, and what apt-get was asked."""
    places = folder / "bin"
    places.mkdir()
    for name in ("bash", "sh", "cat", "mktemp", "rm", "touch", "chmod"):
        (places / name).symlink_to(str(shutil.which(name)))
    log = folder / "log"
    log.touch()
    made = {"id": f"#!/bin/sh\necho {user}\n", "apt-get": APT.format(log=log, then=then)}
    for name, text in (made | dict.fromkeys(there, "#!/bin/sh\n")).items():
        (places / name).write_text(text)
        (places / name).chmod(0o755)
    done = subprocess.run(
        [ROOT / ".ci" / "prepare"],
        env={"PATH": str(places), "CI": ci, "TMPDIR": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr, log.read_text().splitlines()


def test_where_all_is_there_nothing_is_asked_or_said(tmp_path: Path) -> None:
    assert prepare(tmp_path, *THERE) == (0, "", [])


@pytest.mark.skipif(not Path("/etc/debian_version").exists(), reason="this is no Debian")
def test_what_is_missing_is_installed_by_root_and_looked_for_again(tmp_path: Path) -> None:
    made = tmp_path / "bin" / "chromium"
    there = [name for name in THERE if name != "chromium"]
    code, text, asked = prepare(tmp_path, *there, then=f"touch {made}; chmod +x {made}; echo noise")
    assert (code, text) == (0, "installing chromium fonts-liberation\n")
    assert [line.partition("300 ")[2] for line in asked] == [
        "update",
        "install --yes --no-install-recommends chromium fonts-liberation",
    ]


@pytest.mark.skipif(not Path("/etc/debian_version").exists(), reason="this is no Debian")
@pytest.mark.parametrize(
    ("then", "said"), [("echo no network; exit 100", "no network"), ("", "yet not found: git")]
)
def test_an_install_that_fails_is_shown_and_is_a_failure(
    tmp_path: Path, then: str, said: str
) -> None:
    code, text, _ = prepare(tmp_path, *THERE[1:], then=then)
    assert code == 1
    assert said in text


@pytest.mark.parametrize(("ci", "code"), [("1", 1), ("", 0)])
def test_who_may_not_install_is_told_what_is_missing(tmp_path: Path, ci: str, code: int) -> None:
    ended, text, asked = prepare(tmp_path, *THERE[2:], user=1000, ci=ci)
    assert (ended, asked) == (code, [])
    assert "git make" in text.splitlines()[0]
