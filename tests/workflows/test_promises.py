"""What docs/security.md promises of the workflows, read from the files that are written."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from perfci.commands.workflows import WORKFLOWS, render_workflow
from tests.workflows.examples import ACTION, COMMENT, ROOT, VARIANTS, parsed
from tests.workflows.examples import step as step_of

ACTIONS = {"action": ACTION, "comment": COMMENT}
ALL = [(variant, name) for variant in VARIANTS for name in WORKFLOWS]
OWN = sorted(path.name for path in (ROOT / ".github" / "workflows").glob("*.yml"))


def text_of(variant: str, name: str) -> str:
    if variant == "own":
        return (ROOT / ".github" / "workflows" / name).read_text(encoding="utf-8")
    return render_workflow(name, VARIANTS[variant])


PINNED = re.compile(r"\s+(- )?uses: [\w-]+/[\w-]+(/actions/\w+)?@[0-9a-f]{40} # v\d+\.\d+\.\d+")

every_workflow = pytest.mark.parametrize(
    ("variant", "name"), [*ALL, *(("own", name) for name in OWN)]
)


def steps(workflow: Any) -> list[dict[str, Any]]:
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


def uses(workflow: Any, action: str) -> list[dict[str, Any]]:
    return [step for step in steps(workflow) if step.get("uses", "").startswith(action)]


@every_workflow
def test_no_permission_is_given_to_a_whole_workflow(variant: str, name: str) -> None:
    workflow = parsed(text_of(variant, name))
    assert workflow["permissions"] == {}
    for job in workflow["jobs"].values():
        assert "write-all" not in job["permissions"]
        assert job["timeout-minutes"] <= 60


@every_workflow
def test_every_action_is_pinned_by_commit_and_says_its_version(variant: str, name: str) -> None:
    lines = [line for line in text_of(variant, name).splitlines() if "uses:" in line]
    assert lines
    for line in lines:
        own = variant == "own" and re.search(r"uses: \./(actions/\w+)? # zizmor", line)
        assert own or PINNED.fullmatch(line), line


@pytest.mark.parametrize("name", ACTIONS)
def test_the_actions_that_perfcis_use_are_pinned_too(name: str) -> None:
    lines = [line for line in ACTIONS[name].splitlines() if "uses:" in line]
    assert lines
    assert all(PINNED.fullmatch(line) for line in lines)


@every_workflow
def test_no_expression_stands_in_a_script(variant: str, name: str) -> None:
    for step in steps(parsed(text_of(variant, name))):
        assert "${{" not in step.get("run", "")


@pytest.mark.parametrize("name", ACTIONS)
def test_no_expression_stands_in_a_script_of_an_action(name: str) -> None:
    scripts = [one["run"] for one in parsed(ACTIONS[name])["runs"]["steps"] if "run" in one]
    assert scripts
    assert "${{" not in "".join(scripts)


@every_workflow
def test_no_checkout_leaves_a_token_behind(variant: str, name: str) -> None:
    checkouts = uses(parsed(text_of(variant, name)), "actions/checkout@")
    assert checkouts
    for step in checkouts:
        assert step["with"]["persist-credentials"] is False


@every_workflow
def test_nothing_is_cached_and_no_secret_is_named(variant: str, name: str) -> None:
    text = text_of(variant, name)
    assert "secrets." not in text
    assert "pull_request_target" not in text
    assert not re.search(r"^\s+cache:", text, re.MULTILINE)
    assert "actions/cache" not in text


def test_the_action_that_measures_takes_no_token() -> None:
    assert "token" not in str(parsed(ACTION)["inputs"]).replace("needs no token", "")
    assert "github.token" not in ACTION
    assert "secrets." not in ACTION


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(
    "name", ["perfci.yml", "perfci-nightly.yml", "perfci-baseline.yml", "perfci-bisect.yml"]
)
def test_a_job_that_measures_is_given_no_token_and_can_write_nothing(
    variant: str, name: str
) -> None:
    workflow = parsed(text_of(variant, name))
    assert "env" not in workflow
    measuring = {key: job for key, job in workflow["jobs"].items() if key != "store"}
    assert len(measuring) == (2 if name == "perfci-nightly.yml" else 1)  # and `merge`
    for job in measuring.values():
        assert job["permissions"] == {"contents": "read"}
        assert "env" not in job
        for step in job["steps"]:
            assert "TOKEN" not in str(step.get("env", {})).upper()
            assert "token" not in str(step.get("with", {}))


@pytest.mark.parametrize("text", [ACTION, text_of("plain", "perfci-baseline.yml")])
def test_no_build_is_kept_for_the_next_job_which_another_could_have_changed(text: str) -> None:
    run = step_of(parsed(text), "Measure")["run"]
    own = re.search(r'PERFCI_CACHE_DIR="(\$\{PERFCI_CACHE_DIR:-)?\$RUNNER_TEMP/perfci-cache', run)
    measuring = re.search(r"\n(perfci |\"\$own\" -P -m perfci )", run)
    assert own
    assert measuring
    assert own.start() < measuring.start()


@pytest.mark.parametrize("variant", VARIANTS)
def test_stage_1_is_cancelled_by_a_newer_push_and_uploads_the_report_alone(variant: str) -> None:
    workflow = parsed(text_of(variant, "perfci.yml"))
    assert workflow["on"] == {
        "pull_request": {"types": ["opened", "synchronize", "reopened", "edited", "labeled"]},
        "merge_group": {"types": ["checks_requested"]},
    }
    assert workflow["concurrency"]["cancel-in-progress"] is True
    assert not uses(workflow, "actions/upload-artifact@")
    (upload,) = (one for one in parsed(ACTION)["runs"]["steps"] if "uses" in one)
    assert upload["with"]["path"] == "${{ steps.measure.outputs.report }}"
    (checkout,) = uses(workflow, "actions/checkout@")
    measured = "github.event.pull_request.head.sha || github.event.merge_group.head_sha"
    assert checkout["with"]["ref"] == f"${{{{ {measured} }}}}"


def test_stage_2_uploads_the_page_that_the_comment_links() -> None:
    action = parsed(COMMENT)
    upload = action["runs"]["steps"][-1]
    assert upload["uses"].startswith("actions/upload-artifact@")
    assert upload["with"]["path"] == "${{ runner.temp }}/page"
    run = step_of(action, "Comment")["run"]
    assert '--page "$RUNNER_TEMP/page/perfci-report.html"' in run
    assert "actions/runs/$GITHUB_RUN_ID" in run


@pytest.mark.parametrize("variant", VARIANTS)
def test_what_measures_or_posts_nothing_ends_nothing_that_does(variant: str) -> None:
    """A workflow's concurrency comes before its jobs' conditions."""
    stage_1 = parsed(text_of(variant, "perfci.yml"))
    edited, target = "github.event.action == 'edited'", "github.event.changes.base"
    labeled, label = "github.event.action == 'labeled'", "github.event.label.name == 'perfci'"
    (job,) = stage_1["jobs"].values()
    measured = " ".join(job["if"].split())
    either = [f"({what.replace('==', '!=')} || {when})" for what, when in PASSED]
    assert measured.startswith(" && ".join(either))
    labels = "contains(github.event.pull_request.labels.*.name, 'perfci')"
    assert (labels in measured) == (VARIANTS[variant].options.trigger == "label")
    assert group(stage_1) == (
        f"perfci-${{{{ ({edited} && !{target} || {labeled} && {label.replace('==', '!=')})"
        " && github.run_id || github.event.pull_request.number || github.ref }}"
    )
    stage_2 = parsed(text_of(variant, "perfci-report.yml"))
    conclusion = "github.event.workflow_run.conclusion"
    (job,) = stage_2["jobs"].values()
    left_out = set(re.findall(rf"{conclusion} != '(\w+)'", job["if"]))
    elsewhere = re.search(
        rf"contains\(fromJSON\('(.*?)'\), {conclusion}\) && github.run_id", group(stage_2)
    )
    assert elsewhere is not None
    assert set(json.loads(elsewhere[1])) == left_out == {"cancelled", "skipped"}


PASSED = (
    ("github.event.action == 'edited'", "github.event.changes.base"),
    ("github.event.action == 'labeled'", "github.event.label.name == 'perfci'"),
)
"""Events of a pull request that measure only under a condition."""


def group(workflow: Any) -> str:
    return str(workflow["concurrency"]["group"])


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("name", WORKFLOWS)
def test_where_a_file_lies_does_not_depend_on_how_many_artifacts_there_are(
    variant: str, name: str
) -> None:
    downloads = uses(parsed(text_of(variant, name)), "actions/download-artifact@")
    assert bool(downloads) == (name in {"perfci-baseline.yml", "perfci-nightly.yml"})
    downloads += [
        one for one in parsed(COMMENT)["runs"]["steps"] if "download" in one.get("uses", "")
    ]
    for download in downloads:
        asked = download["with"]
        assert "name" in asked or asked["merge-multiple"] is True


@pytest.mark.parametrize("variant", VARIANTS)
def test_stage_2_runs_the_default_branch_on_githubs_machine(variant: str) -> None:
    workflow = parsed(text_of(variant, "perfci-report.yml"))
    (job,) = workflow["jobs"].values()
    assert workflow["on"]["workflow_run"]["workflows"] == ["perfci"]
    assert job["runs-on"] == "ubuntu-latest"
    assert job["permissions"] == {
        "contents": "read",
        "actions": "read",
        "pull-requests": "write",
        "checks": "write",
    }
    (checkout,) = uses(workflow, "actions/checkout@")
    assert "ref" not in checkout["with"]  # the default branch
    assert [one["uses"] for one in job["steps"] if "token" in one.get("with", {})] == [
        f"o/perfci/actions/comment@{40 * 'a'}"
    ]
    action = parsed(COMMENT)["runs"]["steps"]
    holding = [step["name"] for step in action if "inputs.token" in str(step.get("env", {}))]
    assert holding == ["Comment"]
    (download,) = (step for step in action if "inputs.token" in str(step.get("with", {})))
    assert download["with"]["path"].startswith("${{ runner.temp }}/")


@pytest.mark.parametrize(
    ("action", "name", "command"),
    [(COMMENT, "Take the expected reports", "merge"), (COMMENT, "Comment", "comment")],
)
def test_what_is_printed_of_a_report_or_a_comment_is_no_command(
    action: str, name: str, command: str
) -> None:
    before, after = re.split(rf"\S+ -P -m perfci {command}", step_of(parsed(action), name)["run"])
    assert re.search(r'echo "::stop-commands::\$resume"\n\s*(?:code=0\n\s*)?$', before)
    resumed = 'echo "::$resume::"'
    assert f"trap '{resumed}' EXIT" in before or resumed in after


@pytest.mark.parametrize("variant", VARIANTS)
def test_writers_queue_and_the_one_that_writes_measures_nothing(variant: str) -> None:
    workflow = parsed(text_of(variant, "perfci-baseline.yml"))
    assert workflow["concurrency"]["cancel-in-progress"] is False
    store = workflow["jobs"]["store"]
    assert store["permissions"] == {"contents": "write"}
    assert store["runs-on"] == "ubuntu-latest"
    assert not any("pip" in step.get("run", "") for step in store["steps"])
    (push,) = (step for step in store["steps"] if "GITHUB_TOKEN" in step.get("env", {}))
    assert "perfci " not in push["run"].replace("perfci: baselines", "")


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_nightly_job_that_writes_the_history_runs_git_alone(variant: str) -> None:
    workflow = parsed(text_of(variant, "perfci-nightly.yml"))
    assert workflow["concurrency"]["cancel-in-progress"] is False
    store = workflow["jobs"]["store"]
    assert store["permissions"] == {"contents": "write"}
    assert {workflow["jobs"][name]["runs-on"] for name in ("merge", "store")} == {"ubuntu-latest"}
    scripts = [step["run"] for step in store["steps"] if "run" in step]
    (push,) = scripts
    commands = push.replace("perfci: history", "").replace("perfci-history", "")
    assert "perfci " not in commands
    assert "python" not in commands
    assert "pip" not in commands.replace("pipefail", "")
    assert "--force" not in push
    holding = [
        step.get("name")
        for job in workflow["jobs"].values()
        for step in job["steps"]
        if "TOKEN" in str(step.get("env", {})).upper()
    ]
    assert holding == ["Commit and push"]


def test_each_type_of_gpu_is_measured_and_one_that_fails_keeps_no_other_back() -> None:
    jobs = parsed(text_of("sharded", "perfci-nightly.yml"))["jobs"]
    assert jobs["measure"]["strategy"] == {
        "fail-fast": False,
        "matrix": {
            "include": [
                {"gpu": 1, "runner": ["self-hosted", "linux-a100"]},
                {"gpu": 2, "runner": ["self-hosted", "linux-h100"]},
                {"gpu": 3, "runner": ["cpu"]},
            ]
        },
    }
    assert jobs["measure"]["runs-on"] == "${{ matrix.runner }}"
    assert jobs["merge"]["needs"] == "measure"
    assert "!cancelled()" in jobs["merge"]["if"]
    (upload,) = uses({"jobs": {"measure": jobs["measure"]}}, "actions/upload-artifact@")
    assert upload["with"]["name"] == "perfci-night-${{ matrix.gpu }}"
    (collect,) = (one for one in jobs["measure"]["steps"] if "GPU" in one.get("env", {}))
    assert collect["env"]["GPU"] == "${{ matrix.gpu }}"
    files = re.findall(r"\$RUNNER_TEMP/night/(.*?)\"", collect["run"])
    assert files == ["history-$GPU.jsonl", "report-$GPU.json"]


def test_a_search_runs_on_the_machine_that_a_person_chooses() -> None:
    workflow = parsed(text_of("sharded", "perfci-bisect.yml"))
    machines = workflow["on"]["workflow_dispatch"]["inputs"]["machine"]["options"]
    assert list(map(json.loads, machines)) == [
        ["self-hosted", "linux-a100"],
        ["self-hosted", "linux-h100"],
        ["cpu"],
    ]
    assert workflow["jobs"]["search"]["runs-on"] == "${{ fromJSON(inputs.machine) }}"


def test_every_shard_is_measured_once_and_expected() -> None:
    stage_1 = parsed(text_of("sharded", "perfci.yml"))
    stage_2 = text_of("sharded", "perfci-report.yml")
    (job,) = stage_1["jobs"].values()
    assert job["strategy"] == {"fail-fast": False, "matrix": {"shard": [1, 2, 3, 4]}}
    assert job["steps"][-1]["with"]["shard"] == "${{ matrix.shard }}/4"
    (posting,) = uses(parsed(stage_2), "o/perfci/actions/comment@")
    assert posting["with"]["shards"] == 4
    take = step_of(parsed(COMMENT), "Take the expected reports")
    assert take["env"]["SHARDS"] == "${{ inputs.shards }}"
    assert '--expect "$SHARDS"' in take["run"]


def test_the_two_workflows_are_short() -> None:
    names = ("perfci.yml", "perfci-report.yml")
    assert sum(len(text_of("plain", name).splitlines()) for name in names) <= 90
