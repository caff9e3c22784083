"""The job that pushes baselines, with real repositories: another writer is never overwritten."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from perfci.commands.workflows import render_workflow
from tests.workflows.examples import PLAIN, parsed, run_step, step
from tests.workflows.remote import Remote

WORKFLOW = parsed(render_workflow("perfci-baseline.yml", PLAIN))


class Baselines(Remote):
    """The server with the stored baselines, and the job that pushes them."""

    def files(self) -> list[str]:
        return self.git(self.bare, "ls-tree", "-r", "--name-only", "main").split()

    def show(self, path: str) -> str:
        return self.git(self.bare, "show", f"main:{path}")

    def store(
        self, checkout: Path, files: dict[str, str], branch: str = "main"
    ) -> subprocess.CompletedProcess[str]:
        """Run the step in ``checkout`` with ``files`` as what the measuring job left."""
        temporary = self.folder / f"{checkout.name}-temp"
        for name, text in files.items():
            path = temporary / "changed" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return self.push(WORKFLOW, checkout, temporary, BASELINES="baselines", BRANCH=branch)


@pytest.fixture
def remote(tmp_path: Path) -> Baselines:
    return Baselines(tmp_path)


def test_new_baselines_are_pushed_in_one_commit(remote: Baselines) -> None:
    done = remote.store(remote.checkout("job"), {"baselines/key/case.json": "{}\n"})
    assert done.returncode == 0, done.stderr
    assert remote.files() == ["baselines/key/case.json", "lib.py"]
    subjects = remote.git(remote.bare, "log", "--format=%s", "main").splitlines()
    assert subjects == ["perfci: baselines of 0123456789ab", "first"]


def test_a_writer_that_was_overtaken_keeps_what_the_other_wrote(remote: Baselines) -> None:
    one, other = remote.checkout("one"), remote.checkout("other")
    assert remote.store(one, {"baselines/gpu/case.json": "1\n"}).returncode == 0
    done = remote.store(other, {"baselines/cpu/case.json": "2\n"})
    assert done.returncode == 0, done.stderr
    stored = ["baselines/cpu/case.json", "baselines/gpu/case.json", "lib.py"]
    assert remote.files() == stored


def test_a_file_outside_the_baselines_is_not_stored(remote: Baselines) -> None:
    left = {"baselines/k/c.json": "1\n", "lib.py": "stolen\n", ".github/workflows/x.yml": "x\n"}
    assert remote.store(remote.checkout("job"), left).returncode == 0
    assert remote.files() == ["baselines/k/c.json", "lib.py"]
    assert remote.show("lib.py") == "1\n"


def test_only_what_the_measuring_job_changed_is_collected(remote: Baselines) -> None:
    checkout = remote.checkout("job")
    (checkout / "baselines").mkdir()
    (checkout / "baselines" / "kept.json").write_text("old\n")
    remote.git(checkout, "add", "--all")
    remote.git(checkout, "commit", "--quiet", "--message", "kept")
    (checkout / "baselines" / "key").mkdir()
    (checkout / "baselines" / "key" / "a new.json").write_text("new\n")
    (checkout / "elsewhere.json").write_text("not a baseline\n")
    temporary = remote.folder / "temp"
    temporary.mkdir()
    done = run_step(
        step(WORKFLOW, "Collect what changed")["run"],
        checkout,
        RUNNER_TEMP=str(temporary),
        BASELINES="baselines",
    )
    assert done.returncode == 0, done.stderr
    found = [str(path.relative_to(temporary)) for path in temporary.rglob("*.json")]
    assert found == ["changed/baselines/key/a new.json"]
