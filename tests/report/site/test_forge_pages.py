"""GitHub's pages that a trend links: pull requests by their commits' subjects."""

from __future__ import annotations

import pytest

from perfci.report.site.forge_pages import pull_request

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
