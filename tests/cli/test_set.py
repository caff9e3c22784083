"""``--set KEY=VALUE``: any key of the configuration, for one run."""

from __future__ import annotations

import pytest

from tests.builders.project import Project


def test_a_key_that_is_set_goes_before_the_files(project: Project) -> None:
    project.write("perfci.toml", 'history = "kept.sqlite"\n')
    assert "kept.sqlite" in project.perfci("history", "export").err
    for text in ("history=set.sqlite", "history='set.sqlite'", 'history = "set.sqlite"'):
        done = project.perfci("history", "export", "--set", text)
        assert ("kept.sqlite" in done.err, "set.sqlite" in done.err) == (False, True), done.text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("rounds=1", "the options: `rounds` is 1"),
        ("rounds=many", "the options: `rounds` is 'many'"),
        ("quiet.pins=false", "the options: `quiet.pins` is not a key"),
        ("metrics.latency_p50.threshold=5", '"5%" or "500%"'),
        ("budget=soon", '"2m30s"'),
        ("=", "write KEY=VALUE"),
        ("rounds", "write KEY=VALUE"),
        ("[rounds]", "write KEY=VALUE"),
    ],
)
def test_what_cannot_be_set_is_refused(project: Project, text: str, said: str) -> None:
    done = project.perfci("baseline", "list", "--set", text)
    assert done.code == 2
    assert said in done.text


def test_the_everyday_options_are_read_as_their_keys_are(project: Project) -> None:
    for option in (("--rounds", "1"), ("--budget", "soon"), ("--inject", "latency=20")):
        done = project.perfci("compare", "HEAD", "HEAD", *option)
        assert (done.code, f"the options: `{option[0][2:]}" in done.err) == (2, True), done.text
