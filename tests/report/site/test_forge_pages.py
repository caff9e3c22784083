"""The forges' pages that a trend links: pull requests by their commits' subjects, new issues."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import pytest

from perfci.report.site.forge_pages import new_issue, pull_request, search_page

GITHUB, GITLAB = "https://github.com/octo/models", "https://gitlab.com/octo/group/models"


@pytest.mark.parametrize(
    ("forge", "subject", "name", "page"),
    [
        (GITHUB, "Fuse the mask (#123)", "#123", f"{GITHUB}/pull/123"),
        (GITHUB, "Merge pull request #7 from octo/fuse", "#7", f"{GITHUB}/pull/7"),
        (GITLAB, "Fuse the mask (!12)", "!12", f"{GITLAB}/-/merge_requests/12"),
        (
            "https://bitbucket.org/o/m",
            "Fuse (#4)",
            "#4",
            "https://bitbucket.org/o/m/pull-requests/4",
        ),
        ("https://codeberg.org/o/m", "Fuse (#4)", "#4", "https://codeberg.org/o/m/issues/4"),
        ("", "Fuse the mask (#123)", "#123", ""),
        (GITHUB, "Fixes #123 and (#4) more", "", ""),
        (GITHUB, "Fuse (#12345678901)", "", ""),
        (GITHUB, "", "", ""),
    ],
)
def test_a_commits_subject_names_its_pull_request(
    forge: str, subject: str, name: str, page: str
) -> None:
    assert pull_request(forge, subject) == (name, page)


def test_an_issue_is_prepared_with_any_text() -> None:
    title, body = "a&b=c #1 100 %", "`x`\n<b>&amp;"
    page = urlsplit(new_issue(GITHUB, title, body))
    assert (page.netloc, page.path) == ("github.com", "/octo/models/issues/new")
    assert parse_qs(page.query) == {"title": [title], "body": [body]}
    asked = urlsplit(new_issue(GITLAB, title, body))
    assert asked.path.endswith("/-/issues/new")
    assert parse_qs(asked.query) == {"issue[title]": [title], "issue[description]": [body]}
    assert new_issue("https://bitbucket.org/o/m", title, body) == ""
    assert new_issue("", title, body) == ""


@pytest.mark.parametrize(
    ("forge", "page"),
    [
        (GITHUB, f"{GITHUB}/actions/workflows/perfci-bisect.yml"),
        (GITLAB, f"{GITLAB}/-/pipelines/new?var[PERFCI_BISECT]={{change}}"),
        ("https://bitbucket.org/o/m", ""),
        ("", ""),
    ],
)
def test_a_search_is_started_where_its_workflow_is(forge: str, page: str) -> None:
    assert search_page(forge, lambda _: True) == page
    assert search_page(forge, lambda _: False) == ""
