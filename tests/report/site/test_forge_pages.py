"""GitHub's pages that a trend links: pull requests by their commits' subjects, new issues."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import pytest

from perfci.report.site.forge_pages import new_issue, pull_request, search_page

GITHUB = "https://github.com/octo/models"


@pytest.mark.parametrize(
    ("forge", "subject", "name", "page"),
    [
        (GITHUB, "Fuse the mask (#123)", "#123", f"{GITHUB}/pull/123"),
        (GITHUB, "Merge pull request #7 from octo/fuse", "#7", f"{GITHUB}/pull/7"),
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
    assert new_issue("", title, body) == ""


def test_a_search_is_started_where_its_workflow_is() -> None:
    page = f"{GITHUB}/actions/workflows/perfci-bisect.yml"
    assert search_page(GITHUB, lambda _: True) == page
    assert search_page(GITHUB, lambda _: False) == ""
    assert search_page("", lambda _: True) == ""
