"""A hostile benchmark looks for a secret in the processes around it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from perfci.measure.machine.isolation import SWITCH
from tests.builders.project import Project

pytestmark = pytest.mark.processes

NOBODY = 65534
SPY = """\
import json
import os
import perfci

def read(pid, name):
    with open(f"/proc/{pid}/{name}", "rb") as file:
        return file.read()

def parent(pid):
    return int(read(pid, "stat").rpartition(b")")[2].split()[1])

def memory(pid):
    for line in read(pid, "maps").splitlines():
        if line.endswith((b"[stack]", b"[heap]")):
            start, _, end = line.split()[0].partition(b"-")
            with open(f"/proc/{pid}/mem", "rb", buffering=0) as file:
                file.seek(int(start, 16))
                yield file.read(int(end, 16) - int(start, 16))

above, pid = [], os.getppid()
while pid > 1:
    above.append(pid)
    pid = parent(pid)
found = {}
for pid in [int(name) for name in os.listdir("/proc") if name.isdigit()]:
    if pid == os.getpid():
        continue
    looks = {"environ": lambda: [read(pid, "environ")], "mem": lambda: memory(pid)}
    for name, look in looks.items():
        if name == "mem" and pid not in above[:2]:
            continue
        try:
            if any(b"CANARY=" + b"swordfish" in text for text in look()):
                place = "perfci" if pid == above[0] else "shell" if pid == above[1] else "other"
                found.setdefault(place, []).append(name)
        except OSError:
            pass
with open(RESULT, "w") as file:
    json.dump({"uid": os.getuid(), "found": found}, file)

@perfci.benchmark
def spy():
    return int
"""
NAMESPACES = (
    shutil.which("unshare") is not None
    and not subprocess.run(
        ["unshare", "--user", "--map-current-user", "true"], check=False, capture_output=True
    ).returncode
    and not Path("/dev/nvidiactl").exists()
)
"""Asked of the kernel, not of perfci: what perfci fails to make is a failure."""
needs_namespace = pytest.mark.skipif(
    not NAMESPACES, reason="this machine has no user namespaces for us"
)


@dataclass(frozen=True)
class Spied:
    """A project with a spy, the command that becomes its user, and the Python that measures."""

    project: Project
    become: tuple[str, ...]
    python: str


@pytest.fixture(params=["as it is", "unprivileged"])
def spied(request: pytest.FixtureRequest) -> Iterator[Spied]:
    with tempfile.TemporaryDirectory() as folder:
        project = Project(Path(folder) / "project")
        result = Path(folder) / "found.json"
        project.write("benchmarks/bench_spy.py", f"RESULT = {str(result)!r}\n{SPY}")
        project.commit()
        if request.param == "as it is":
            yield Spied(project, (), sys.executable)
            return
        if os.geteuid() or shutil.which("setpriv") is None:
            pytest.skip("needs root, and setpriv of util-linux")
        for path in (Path(folder), *Path(folder).rglob("*")):
            os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
        become = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
        pythons = (sys.executable, "/usr/bin/python3")
        python = next((one for one in pythons if runs(become, one)), None)
        if python is None:
            pytest.skip("an unprivileged user finds no Python here")
        # perfci's own Python may lie in root's home; the right to look there is none over processes
        may_look = [f"--{kind}-caps=+dac_read_search" for kind in ("inh", "ambient")]
        yield Spied(project, (*become, *may_look), python)


def runs(become: tuple[str, ...], python: str) -> bool:
    code = "import sys; sys.exit(sys.version_info < (3, 11))"
    command = [*become, "sh", "-c", '"$@"; exit $?', "sh", python, "-c", code]
    return subprocess.run(command, check=False, capture_output=True).returncode == 0


def look(spied: Spied, **environment: str) -> dict[str, list[str]]:
    """Run perfci under a shell that has the secret, too; return where the benchmark found it."""
    folder = spied.project.folder.parent
    perfci = [sys.executable, "-m", "perfci", "list", "--python", spied.python]
    done = subprocess.run(
        [*spied.become, "sh", "-c", '"$@"; exit $?', "sh", *perfci],
        cwd=spied.project.folder,
        env=spied.project.environment(CANARY="swordfish", HOME=str(folder), **environment),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "spy" in done.stdout
    told = json.loads((folder / "found.json").read_text())
    assert told["uid"] == (NOBODY if spied.become else os.getuid())
    return told["found"]


@needs_namespace
def test_a_benchmark_finds_no_secret_anywhere(spied: Spied) -> None:
    assert look(spied) == {}


def test_without_a_namespace_perfcis_own_process_is_closed(
    spied: Spied,
) -> None:
    found = look(spied, **{SWITCH: "off"})
    assert "environ" in found["shell"]  # the spy can spy, and docs/security.md says it
    if spied.become or os.geteuid():
        assert "perfci" not in found
        assert "other" not in found


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has rights over others' files")
@needs_namespace
def test_root_keeps_its_rights_over_files(project: Project) -> None:
    theirs = project.folder.parent / "theirs"
    theirs.write_text("x", encoding="utf-8")
    theirs.chmod(0o600)
    os.chown(theirs, NOBODY, NOBODY)
    benchmark = "@perfci.benchmark\ndef a():\n    return int\n"
    text = f"import perfci\nopen({str(theirs)!r}).read()\n{benchmark}"
    project.write("benchmarks/bench_theirs.py", text)
    project.commit()
    assert project.perfci("list").code == 0


@needs_namespace
def test_a_build_is_as_isolated(project: Project) -> None:
    project.counting(1_000)
    project.write(
        "pyproject.toml",
        "[tool.perfci]\n"
        "build = [\"sh -c 'cat /proc/$PPID/environ > seen || true; id -u > who'\"]\n",
    )
    project.write(
        "benchmarks/bench_seen.py",
        "import perfci\nfrom pathlib import Path\nassert Path('seen').read_bytes() == b''\n"
        f"assert Path('who').read_text() == '{os.getuid()}\\n'\n"
        "@perfci.benchmark\ndef seen():\n    return int\n",
    )
    project.commit()
    done = project.perfci("list", "HEAD")
    assert done.code == 0, done.text


@pytest.mark.parametrize("off", [False, True])
def test_doctor_says_which_protection_it_is(project: Project, off: bool) -> None:
    done = project.perfci("doctor", **({SWITCH: "off"} if off else {}))
    (line,) = (line for line in done.out.splitlines() if " isolation: " in line)
    if off or not NAMESPACES:
        assert line.startswith("worse")
        assert "those of the shell and the runner that started it are open" in line
    else:
        assert line.startswith("   ok")
        assert "user namespace" in line
