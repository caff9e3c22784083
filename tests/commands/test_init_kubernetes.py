"""`init --kubernetes`: the job keeps to Kubernetes' description, and what its pods run works."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.builders.branch import QUICKEST
from tests.builders.project import Project

jsonschema = pytest.importorskip("jsonschema")
SCHEMA = Path(__file__).parent.parent / "data/kubernetes-job.json"
OWN = ("init", "--kubernetes", "--shards", "2", "--install", "true # has perfci")


@pytest.fixture
def job(project: Project) -> dict[str, Any]:
    """The job of a project whose origin is on a forge."""
    project.write("pyproject.toml", QUICKEST)
    project.counting(1000)
    project.commit("base")
    project.git("remote", "add", "origin", "https://x:secret@example.org/octo/models.git")
    done = project.perfci(*OWN, "--image", "registry.example.org/torch:2.6").without_traceback()
    assert "wrote    perfci-job.yaml" in done.out, done.text
    return YAML(typ="safe").load(project.folder / "perfci-job.yaml")


def test_the_job_keeps_to_the_description_of_kubernetes(job: dict[str, Any]) -> None:
    validator = jsonschema.Draft7Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))
    assert list(validator.iter_errors(job)) == []
    spec = job["spec"]
    assert (spec["completionMode"], spec["completions"], spec["parallelism"]) == ("Indexed", 2, 2)
    (container,) = spec["template"]["spec"]["containers"]
    assert container["image"] == "registry.example.org/torch:2.6"
    assert {"name": "REPOSITORY", "value": "https://example.org/octo/models"} in container["env"]
    spec["template"]["spec"]["containers"][0]["imagine"] = "x"
    (wrong,) = validator.iter_errors(job)
    assert "imagine" in wrong.message


@pytest.mark.processes
def test_each_index_leaves_its_shards_report(
    project: Project, job: dict[str, Any], tmp_path: Path
) -> None:
    base = project.git("rev-parse", "HEAD").strip()
    project.git("checkout", "--quiet", "-b", "feature")
    project.counting(1001)
    head = project.commit("head")
    (container,) = job["spec"]["template"]["spec"]["containers"]
    reports, clone = tmp_path / "reports", tmp_path / "clone"
    (script,) = container["args"]
    script = script.replace("/reports", str(reports)).replace("/tmp/repository", str(clone))
    for index in range(2):
        environment = project.environment(
            REPOSITORY=str(project.folder), BASE=base, HEAD=head, JOB="perfci-x7",
            JOB_COMPLETION_INDEX=str(index), PATH=f"{Path(sys.executable).parent}:/usr/bin:/bin",
        )  # fmt: skip
        subprocess.run([*container["command"], script], env=environment, check=True)
        subprocess.run(["rm", "-r", str(clone)], check=True)
    parts = sorted(map(str, (reports / "perfci-x7").iterdir()))
    merged = project.process("merge", *parts, "--expect", "2", "--json", str(tmp_path / "out.json"))
    assert (merged.code, len(parts)) == (0, 2), merged.text


def test_what_is_there_is_kept_and_without_a_remote_nothing_is_written(project: Project) -> None:
    project.counting(1000)
    refused = project.perfci(*OWN).without_traceback()
    assert (refused.code, "no remote `origin`" in refused.err) == (2, True), refused.text
    project.git("remote", "add", "origin", "git@example.org:octo/models.git")
    project.write("perfci-job.yaml", "mine\n")
    assert "kept     perfci-job.yaml (differs" in project.perfci(*OWN).out


def test_an_image_that_would_be_more_than_a_name_is_refused(project: Project) -> None:
    project.git("remote", "add", "origin", "git@example.org:octo/models.git")
    done = project.perfci(*OWN, "--image", 'x"\n  privileged: true').without_traceback()
    assert (done.code, "--image" in done.err) == (2, True), done.text
