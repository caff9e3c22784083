"""Where a remote's commits are seen on the web, and that no secret of its address gets there."""

from __future__ import annotations

import pytest

from perfci.measure.checkout.git import web_page
from perfci.report.site.words import address

ONE, TWO = "a" * 40, "b" * 40


@pytest.mark.parametrize(
    ("remote", "page"),
    [
        ("https://github.com/octo/models.git", "https://github.com/octo/models"),
        (
            "https://x-access-token:ghs_secret@github.com/octo/models",
            "https://github.com/octo/models",
        ),
        ("git@github.com:octo/models.git", "https://github.com/octo/models"),
        ("ssh://git@gitlab.example:2222/a/b/c.git", "https://gitlab.example/a/b/c"),
        ("https://git.example:8443/a/b/", "https://git.example/a/b"),
        ("/srv/git/models.git", ""),
        ("../models", ""),
        ("file:///srv/git/models", ""),
        ("https://github.com/octo/models?javascript:alert(1)", ""),
        ('https://github.com/octo/"><script>', ""),
        ("", ""),
    ],
)
def test_a_remote_has_a_page_where_it_is_on_a_forge(remote: str, page: str) -> None:
    assert web_page(remote) == page


def test_a_range_is_a_comparison_and_one_commit_itself() -> None:
    github = "https://github.com/o/m"
    assert address(github, (ONE, TWO)) == f"{github}/compare/{ONE[:10]}...{TWO[:10]}"
    assert address(github, (TWO, TWO)) == f"{github}/commit/{TWO[:10]}"
    assert address(github, ("", TWO)) == f"{github}/commit/{TWO[:10]}"
    assert address("", (ONE, TWO)) == address(github, (ONE, "javascript:1")) == ""
