"""A server or a browser that isn't there: skipped at home, a failure in CI."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.lacking import lacking, needed

ROOT = Path(__file__).resolve().parent.parent


def test_what_is_lacking_is_skipped_at_home_and_fails_in_ci(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="no server"):
        lacking("no server")
    with pytest.raises(pytest.skip.Exception, match="not installed"):
        needed("module_that_is_nowhere")
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="no server"):
        lacking("no server")
    with pytest.raises(ModuleNotFoundError):
        needed("module_that_is_nowhere")


@pytest.mark.parametrize(("in_ci", "code", "said"), [("", 0, "1 skipped"), ("1", 1, "1 error")])
def test_the_tests_of_the_site_do_so_without_a_browser(
    tmp_path: Path, in_ci: str, code: int, said: str
) -> None:
    pytest.importorskip("playwright")
    name = "tests/report/site/test_browser.py::test_the_one_thing_that_matters_comes_first"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-rsE", name],
        cwd=ROOT,
        env={**os.environ, "PATH": str(tmp_path), "CI": in_ci},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    assert said in done.stdout
    assert "no Chromium on this machine" in done.stdout
