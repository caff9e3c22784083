"""``perfci init --github`` as a process: what it finds out, writes, keeps and refuses."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from perfci.commands.workflows import REQUIREMENTS, WORKFLOWS
from tests.builders.project import Project
from tests.workflows.examples import ROOT, parsed
from tests.workflows.locking import LOCK

SHA = "3f786850e387550fdab836ed7e6dc881de23001b"
PERFCI = f"perfci @ git+https://github.com/o/perfci@{SHA}"
INSTALLED = f"python -m pip install '{PERFCI}'"
OF_A_COMMIT = {
    "url": "https://github.com/o/perfci",
    "vcs_info": {"vcs": "git", "commit_id": SHA, "requested_revision": "main"},
}
OF_A_FOLDER = {"url": "file:///home/me/perfci", "dir_info": {}}


@pytest.fixture
def mine(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project, and a perfci that pip says it installed from a commit."""
    project.counting(1000)
    project.commit("base")
    noted = str(project.folder.parent / "noted")
    monkeypatch.setenv("PYTHONPATH", noted, prepend=os.pathsep)
    note(project, OF_A_COMMIT)
    return project


def note(project: Project, origin: object) -> None:
    """Let what pip notes of a package say that perfci is of ``origin``."""
    noted = project.folder.parent / "noted" / "perfci-0.1.0.dist-info"
    noted.mkdir(parents=True, exist_ok=True)
    (noted / "METADATA").write_text("Metadata-Version: 2.1\nName: perfci\nVersion: 0.1.0\n")
    (noted / "direct_url.json").write_text(json.dumps(origin))


def written(project: Project, name: str) -> str:
    return (project.folder / ".github" / "workflows" / name).read_text(encoding="utf-8")


def test_without_github_no_workflow_is_written(mine: Project) -> None:
    assert mine.perfci("init").code == 0
    assert not (mine.folder / ".github").exists()


ALL = (
    *("init", "--github"),
    *("--with", "baseline", "--with", "nightly", "--with", "on-demand"),
)


def test_all_workflows_are_written_and_the_second_time_kept(mine: Project) -> None:
    done = mine.perfci(*ALL)
    assert done.code == 0, done.text
    folder = mine.folder / ".github" / "workflows"
    assert sorted(path.name for path in folder.iterdir()) == sorted((*WORKFLOWS, REQUIREMENTS))
    assert done.out.count("wrote    .github/workflows/") == 7
    changed = folder / "perfci.yml"
    changed.write_text("mine now\n")
    (folder / "perfci-nightly.yml").unlink()
    again = mine.perfci(*ALL)
    assert again.code == 0
    assert "kept     .github/workflows/perfci.yml" in again.out
    assert "wrote    .github/workflows/perfci-nightly.yml" in again.out
    assert again.out.count("kept     .github/workflows/") == 6
    assert changed.read_text() == "mine now\n"
    assert again.out.count("differs from what would be written now") == 1


def test_other_options_than_the_files_were_written_with_are_not_passed_over(mine: Project) -> None:
    mine.perfci(*ALL)
    again = mine.perfci(*ALL, "--runner", "other")
    kept = {line for line in again.out.splitlines() if line.startswith("kept     .github")}
    differing = {line.split()[1] for line in kept if "delete it to have it written again" in line}
    measuring = set(WORKFLOWS) - {"perfci-report.yml"}
    assert differing == {f".github/workflows/{name}" for name in measuring}


def test_two_workflows_are_written_where_no_more_are_asked_for(mine: Project) -> None:
    done = mine.perfci("init", "--github")
    assert done.code == 0, done.text
    folder = mine.folder / ".github" / "workflows"
    names = {path.name for path in folder.iterdir()}
    assert names == {"perfci.yml", "perfci-report.yml"}
    assert "docs/" not in done.out
    for name in ("perfci.yml", "perfci-report.yml"):
        assert "docs/" not in written(mine, name)
    assert mine.perfci("init", "--github", "--with", "report").code == 2


def test_nights_are_not_checked_against_baselines_that_nothing_stores(mine: Project) -> None:
    assert mine.perfci("init", "--github", "--with", "nightly").code == 0
    text = written(mine, "perfci-nightly.yml")
    names = [step.get("name") for step in parsed(text)["jobs"]["measure"]["steps"]]
    assert "Measure" in names
    assert not {"Check", "Summary"}.intersection(names)
    assert "report.json" not in text


def test_runners_of_nights_ask_for_nights(mine: Project) -> None:
    assert mine.perfci("init", "--github", "--nightly-runner", "a100").code == 0
    assert "a100" in written(mine, "perfci-nightly.yml")
    inputs = parsed(written(mine, "perfci-bisect.yml"))["on"]["workflow_dispatch"]["inputs"]
    assert [json.loads(labels) for labels in inputs["machine"]["options"]] == [["a100"]]
    assert not (mine.folder / ".github" / "workflows" / "perfci-baseline.yml").exists()


def test_the_job_that_comments_installs_by_hash_and_by_commit(mine: Project) -> None:
    assert mine.perfci(*ALL, "--python-version", "3.13").code == 0
    assert written(mine, REQUIREMENTS) == LOCK.read_text(encoding="utf-8")
    hashed = "--require-hashes --only-binary :all:"
    commands = [
        f"python -m pip install {hashed} -r .github/workflows/{REQUIREMENTS}",
        f"python -m pip install --no-deps --no-build-isolation '{PERFCI}'",
    ]
    merge = parsed(written(mine, "perfci-nightly.yml"))["jobs"]["merge"]
    assert merge["steps"][1]["with"] == {"python-version": "3.12"}  # that the lock is for
    assert merge["steps"][2]["run"].splitlines()[-2:] == commands
    assert [one for one in merge["steps"] if "pip" in str(one)] == [merge["steps"][2]]
    stage_2 = parsed(written(mine, "perfci-report.yml"))["jobs"]["comment"]
    assert stage_2["steps"][1]["with"] == {"python-version": "3.12"}
    assert stage_2["steps"][2]["uses"] == f"o/perfci/actions/comment@{SHA}"
    assert "pip" not in str(stage_2)
    script = (ROOT / "actions" / "install.sh").read_text()
    assert "--require-hashes" in script
    assert f"templates/workflows/{REQUIREMENTS}" in script


def test_a_perfci_of_a_folder_is_not_looked_for_on_an_index(mine: Project) -> None:
    note(mine, OF_A_FOLDER)
    done = mine.perfci("init", "--github").without_traceback()
    assert done.code == 2, done.text
    assert "--action YOUR-ORG/perfci@COMMIT" in done.err
    assert not (mine.folder / ".github").exists()
    named = ("init", "--github", "--action", f"mine/perfci@{SHA}")
    done = mine.perfci(*named)
    assert done.code == 0, done.text
    assert not done.err
    uses = [
        step.get("uses") for step in parsed(written(mine, "perfci.yml"))["jobs"]["measure"]["steps"]
    ]
    assert uses[-1] == f"mine/perfci@{SHA}"
    assert mine.perfci(*named, "--report-install", "make perfci").code == 2  # nothing installs it
    nightly = (*named, "--with", "nightly")
    done = mine.perfci(*nightly)
    assert done.code == 2, done.text
    assert {"--install,", "--report-install."} <= set(done.err.split())
    told = mine.perfci(*nightly, "--report-install", "make perfci")
    assert told.code == 0, told.text
    assert "--install" in told.err  # what measures would be of an index still
    assert not (mine.folder / ".github" / "workflows" / REQUIREMENTS).exists()
    install = (
        "--install",
        "make both # with perfci",
        "--report-install",
        f"pip install -r {REQUIREMENTS}",
    )
    done = mine.perfci(*nightly, *install)
    assert not done.err
    assert f"wrote    .github/workflows/{REQUIREMENTS}" in done.out


def test_without_a_gpu_the_runner_is_one_of_githubs(mine: Project) -> None:
    assert mine.perfci(*ALL, CUDA_VISIBLE_DEVICES="").code == 0
    assert parsed(written(mine, "perfci.yml"))["jobs"]["measure"]["runs-on"] == "ubuntu-latest"


def test_it_asks_nothing_that_it_can_find_out(mine: Project) -> None:
    mine.git("branch", "--move", "trunk")
    with (mine.folder / "pyproject.toml").open("a") as file:
        file.write('baselines = "perf/baselines"\n\n[project]\nname = "mine"\n')
    assert mine.perfci(*ALL, CUDA_VISIBLE_DEVICES="0").code == 0  # as a machine with a GPU has it
    baseline = parsed(written(mine, "perfci-baseline.yml"))
    assert baseline["on"]["push"] == {
        "branches": ["trunk"],
        "paths-ignore": ["perf/baselines/**"],
    }
    stage_1 = parsed(written(mine, "perfci.yml"))["jobs"]["measure"]
    assert stage_1["runs-on"] == ["self-hosted", "gpu"]
    assert stage_1["steps"][1]["with"] == {
        "python-version": f"{sys.version_info.major}.{sys.version_info.minor}"
    }
    assert "\npython -m pip install .\n" in stage_1["steps"][2]["run"]
    (measure,) = (
        one for one in baseline["jobs"]["measure"]["steps"] if one.get("name") == "Install"
    )
    assert f"{INSTALLED} .\n" in measure["run"]


def test_the_default_branch_is_what_origin_says(mine: Project) -> None:
    mine.git("branch", "develop")
    mine.git("switch", "--quiet", "--create", "feature")
    clone = mine.folder.parent / "clone"
    mine.git("switch", "--quiet", "develop")
    subprocess.run(["git", "clone", "--quiet", str(mine.folder), str(clone)], check=True)
    subprocess.run(["git", "-C", str(clone), "switch", "--quiet", "feature"], check=True)
    done = subprocess.run(
        [sys.executable, "-m", "perfci", *ALL],
        cwd=clone,
        env=mine.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    text = (clone / ".github" / "workflows" / "perfci-baseline.yml").read_text()
    assert parsed(text)["on"]["push"]["branches"] == ["develop"]


def test_requirements_are_installed_where_there_is_no_package(mine: Project) -> None:
    mine.perfci("init", "--github")
    assert "pip install" not in written(mine, "perfci.yml")  # nothing here imports torch
    (mine.folder / ".github" / "workflows" / "perfci.yml").unlink()
    mine.write("model.py", "def size():\n    import torch\n")
    mine.perfci("init", "--github")
    assert "python -m pip install torch\n" in written(mine, "perfci.yml")
    (mine.folder / ".github" / "workflows" / "perfci.yml").unlink()
    mine.write("requirements.txt", "torch\n")
    mine.perfci("init", "--github")
    assert "python -m pip install -r requirements.txt\n" in written(mine, "perfci.yml")


def test_what_is_given_goes_before_what_is_found(mine: Project) -> None:
    done = mine.perfci(
        *("init", "--github", "--runner", "linux-a100", "--shards", "2"),
        *("--python-version", "3.13", "--install", "make wheels"),
        *("--install", "pip install x perfci"),
        *("--report-install", "pip install perfci-fork"),
        *("--nightly-runner", "self-hosted,a100", "--nightly-runner", "linux-h100"),
    )
    assert done.code == 0, done.text
    stage_1 = parsed(written(mine, "perfci.yml"))["jobs"]["measure"]
    assert stage_1["runs-on"] == "linux-a100"
    assert stage_1["strategy"]["matrix"] == {"shard": [1, 2]}
    assert stage_1["steps"][1]["with"] == {"python-version": "3.13"}
    assert "make wheels\npip install x perfci\n" in stage_1["steps"][2]["run"]
    night = parsed(written(mine, "perfci-nightly.yml"))["jobs"]["measure"]
    runners = [one["runner"] for one in night["strategy"]["matrix"]["include"]]
    assert runners == [["self-hosted", "a100"], ["linux-h100"]]
    nightly = written(mine, "perfci-nightly.yml")
    assert "pip install perfci-fork" in nightly
    assert nightly.count("make wheels") == 1
    assert "make wheels" not in written(mine, "perfci-report.yml")


@pytest.mark.parametrize(
    "arguments",
    [
        ("--runner", "gpu]\n    env: {A: b"),
        ("--runner", "${{ inputs.runner }}"),
        ("--python-version", '3.12"'),
        ("--install", "pip install ${{ github.head_ref }}"),
        ("--install", "one\ntwo"),
        ("--report-install", ""),
        ("--action", "mine/perfci"),
        ("--action", "mine/perfci@${{ github.sha }}"),
        ("--trigger", "comment"),
        ("--nightly-runner", "gpu, ${{x}}"),
        ("--nightly-runner", "gpu,,a100"),
        ("--shards", "257"),
        ("--shards", "0"),
    ],
)
def test_what_cannot_stand_in_a_workflow_is_refused_before_one_is_written(
    mine: Project, arguments: tuple[str, str]
) -> None:
    done = mine.perfci("init", "--github", *arguments).without_traceback()
    assert done.code == 2, done.text
    assert not (mine.folder / ".github").exists()


@pytest.mark.parametrize(
    ("action", "why"),
    [("me/perfci@main", "pin it to a commit"), ("me/perfci", "the commit is missing")],
)
def test_an_action_is_pinned_to_a_commit(mine: Project, action: str, why: str) -> None:
    done = mine.perfci("init", "--github", "--action", action).without_traceback()
    assert (done.code, why in done.err, "OWNER/NAME@COMMIT" in done.err) == (2, True, True)
    assert not (mine.folder / ".github").exists()


def test_an_install_without_perfci_is_refused(mine: Project) -> None:
    install = ("--install", "pip install torch")
    done = mine.perfci("init", "--github", "--with", "nightly", *install).without_traceback()
    assert done.code == 2, done.text
    assert "none of the commands of --install installs perfci" in done.text
    assert not (mine.folder / ".github").exists()


def test_a_branch_with_an_expression_in_its_name_is_refused(mine: Project) -> None:
    mine.git("branch", "--move", "${{x}}")
    done = mine.perfci("init", "--github").without_traceback()
    assert done.code == 2
    assert "default branch" in done.err


@pytest.mark.parametrize("given", [("--shards", "2"), ("--trigger", "label")])
def test_options_about_workflows_need_github(mine: Project, given: tuple[str, ...]) -> None:
    done = mine.perfci("init", *given)
    assert done.code == 2
    assert "--github" in done.err


def test_a_link_out_of_the_repository_is_not_followed(mine: Project) -> None:
    outside = mine.folder.parent / "outside"
    outside.mkdir()
    (mine.folder / ".github").symlink_to(outside)
    done = mine.perfci("init", "--github").without_traceback()
    assert done.code == 2
    assert not list(outside.rglob("*.yml"))
