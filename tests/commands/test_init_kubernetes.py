"""`init --kubernetes`: the job keeps to Kubernetes' description, and what its pods run works."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from base64 import b64encode
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
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
    pod = spec["template"]["spec"]
    (clone,), (container,) = pod["initContainers"], pod["containers"]
    assert container["image"] == clone["image"] == "registry.example.org/torch:2.6"
    assert {"name": "REPOSITORY", "value": "https://example.org/octo/models"} in clone["env"]
    assert "credentials" not in str(container)
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
    pod = job["spec"]["template"]["spec"]
    reports, clone = tmp_path / "reports", tmp_path / "clone"
    reports.mkdir()
    folders = {"/reports": str(reports), "/work/repository": str(clone)}
    scripts = [script_of(part, folders) for part in (*pod["initContainers"], *pod["containers"])]
    for index in range(2):
        environment = project.environment(
            REPOSITORY=str(project.folder), BASE=base, HEAD=head, JOB="perfci-x7",
            JOB_COMPLETION_INDEX=str(index), PATH=f"{Path(sys.executable).parent}:/usr/bin:/bin",
        )  # fmt: skip
        for script in scripts:
            subprocess.run(script, env=environment, check=True)
        subprocess.run(["rm", "-r", str(clone)], check=True)
    parts = sorted(map(str, (reports / "perfci-x7").iterdir()))
    merged = project.process("merge", *parts, "--expect", "2", "--json", str(tmp_path / "out.json"))
    assert (merged.code, len(parts)) == (0, 2), merged.text


def script_of(container: dict[str, Any], folders: dict[str, str]) -> list[str]:
    """Return the command of a container, with folders of this machine in place of its own."""
    (script,) = container["args"]
    for inside, here in folders.items():
        script = script.replace(inside, here)
    return [*container["command"], script]


class PrivateRepository(SimpleHTTPRequestHandler):
    """Serves a repository's files to those who give its user and password."""

    def do_GET(self) -> None:
        given = self.headers.get("Authorization", "")
        if given == "Basic " + b64encode(b'x-access-token:it\'s a "secret"').decode():
            super().do_GET()
            return
        self.send_response(401)
        self.send_header("WWW-Authenticate", "Basic")
        self.end_headers()

    def log_message(self, *_: object) -> None: ...


def test_a_private_repository_is_cloned_by_the_secret(
    project: Project, job: dict[str, Any], tmp_path: Path
) -> None:
    project.git("update-server-info")
    (tmp_path / "credentials").mkdir()
    (clone,) = job["spec"]["template"]["spec"]["initContainers"]
    here = {"/credentials": str(tmp_path / "credentials"), "/work": str(tmp_path / "work")}
    serve = partial(PrivateRepository, directory=str(project.folder / ".git"))
    with ThreadingHTTPServer(("127.0.0.1", 0), serve) as server:
        threading.Thread(target=server.serve_forever).start()
        environment = project.environment(
            REPOSITORY=f"http://127.0.0.1:{server.server_port}/", GIT_TERMINAL_PROMPT="0"
        )
        run = partial(
            subprocess.run, script_of(clone, here), env=environment, capture_output=True, text=True
        )
        refused = run(check=False)
        (tmp_path / "credentials/username").write_text("x-access-token")
        (tmp_path / "credentials/password").write_text('it\'s a "secret"')
        cloned = run(check=False)
        server.shutdown()
    assert refused.returncode, refused.stderr
    assert (cloned.returncode, cloned.stderr) == (0, "")
    assert "secret" not in (tmp_path / "work/repository/.git/config").read_text()


KUBECTL = """\
#!/bin/sh
test "$*" = "get job/NAME -o jsonpath={.status.conditions[*].type}" || exit 2
echo >> "$STATE/asked"
test "$(wc -l < "$STATE/asked")" -lt 2 || cat "$STATE/end"
test ! -e "$STATE/gone"
"""


@pytest.mark.parametrize("end", ["SuccessCriteriaMet Complete", "FailureTarget Failed", "gone"])
def test_the_wait_ends_with_the_job_however_that_ends(
    project: Project, job: dict[str, Any], tmp_path: Path, end: str
) -> None:
    del job
    head = (project.folder / "perfci-job.yaml").read_text(encoding="utf-8").splitlines()
    lines = [line.removeprefix("#") for line in head if line.startswith("#   ")]
    first = next(at for at, line in enumerate(lines) if "while" in line)
    wait = "\n".join(lines[first : first + 2]).replace("sleep 10", "sleep 0.01")
    (tmp_path / "kubectl").write_text(KUBECTL)
    (tmp_path / "kubectl").chmod(0o755)
    (tmp_path / "end").write_text(end)
    if end == "gone":
        (tmp_path / "gone").touch()
    subprocess.run(
        ["sh", "-c", wait],
        env={"PATH": f"{tmp_path}:{os.environ['PATH']}", "STATE": str(tmp_path)},
        check=False,
        timeout=60,
    )
    assert (tmp_path / "asked").read_text() == ("\n" if end == "gone" else 2 * "\n")


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
