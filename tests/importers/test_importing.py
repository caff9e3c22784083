"""``perfci history import`` of other tools' files: everything, once."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from tests.builders.in_process import Done, in_process
from tests.importers.samples import FOLDER


def perfci(folder: Path, *arguments: str) -> Done:
    asked = ("history", *arguments, "--history", "history.sqlite")
    return in_process(asked, folder, os.environ).without_traceback()


def test_a_file_that_is_not_what_it_says_is_told_and_nothing_is_added(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text('{"machine_info": {}, "benchmarks": 3}')
    done = perfci(tmp_path, "import", "x.json")
    assert done.code == 4
    assert "x.json looks like a result file of pytest-benchmark, but at $.benchmarks" in done.err
    assert "Expected `array`, got `int`" in done.err
    assert perfci(tmp_path, "export").code == 2  # there is no history: none was begun


def test_a_checkout_is_not_read_through_for_the_results_in_it(tmp_path: Path) -> None:
    for place in (".asv/results", "a/b/c", "a/b/c/d", "node_modules/x", ".cache"):
        folder = tmp_path / "checkout" / place
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(FOLDER / "google-benchmark-small.json", folder / f"{len(place)}.json")
    done = perfci(tmp_path, "import", "checkout")
    assert done.out == "checkout: google-benchmark, 1 new run, 1 was there already\n", done.text
