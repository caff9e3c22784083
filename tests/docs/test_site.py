"""The site is built without a warning, in the order of docs/README.md, and finds no results."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from itertools import chain
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, page, section


@pytest.mark.slow
def test_the_site_has_the_order_of_the_list_and_its_search_leaves_out_the_results(
    tmp_path: Path,
) -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "docs" / "site" / "build.py", tmp_path],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    text = (tmp_path / "searchindex.js").read_text(encoding="utf-8")
    index = json.loads(text.removeprefix("Search.setIndex(").removesuffix(")"))
    numbers = chain.from_iterable(
        [each] if isinstance(each, int) else each for each in index["terms"].values()
    )
    searched = {index["docnames"][number] for number in numbers}
    assert {"statistics", "reference/configuration"} <= searched
    assert [name for name in searched if name.startswith("results/")] == []
    html = (tmp_path / "index.html").read_text(encoding="utf-8")
    shown = re.findall(r'<a class="reference internal" href="([\w-]+)\.html">\d+\. ', html)
    listed = re.findall(r"\]\(([\w-]+)\.md\)", section(page("README.md"), "## Guide"))
    assert shown == listed
