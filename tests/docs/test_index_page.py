"""What a package index shows of the README, as the build hands it on."""

from __future__ import annotations

import json
import re
import subprocess
import sys

from tests.docs.pages import ROOT


def test_no_link_and_no_image_of_the_index_page_is_relative() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "metadata", "--compact"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    readme = json.loads(done.stdout)["readme"]["text"]
    links = re.findall(r"\]\(([^)\s]+)\)", readme)
    source = "https://github.com/OWNER/perfci"
    assert f"{source}/raw/v0.1.0/docs/images/comments/regressions.png" in links
    assert f"{source}/blob/v0.1.0/docs/github.md" in links
    assert [one for one in links if not one.startswith((source, "#"))] == []
