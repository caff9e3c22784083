"""``perfci history import`` of other tools' files: everything, once."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

from tests.builders.in_process import Done, in_process
from tests.importers.samples import FOLDER, plain


def perfci(folder: Path, *arguments: str) -> Done:
    asked = ("history", *arguments, "--history", "history.sqlite")
    return in_process(asked, folder, os.environ).without_traceback()


def test_a_folder_imported_twice_is_there_once_and_what_was_left_out_is_told(
    tmp_path: Path,
) -> None:
    shutil.copytree(FOLDER, tmp_path / "old")
    (tmp_path / "old" / "cut.json").write_text('{"commit_hash": ')
    shutil.copy(FOLDER / "google-benchmark-small.json", tmp_path / "old" / "copy.json")
    first = perfci(tmp_path, "import", "old")
    assert first.code == 0
    assert first.out == "old: 10 new runs, 1 was there already\n"  # the copy
    assert "left out cut.json: cut.json can't be read" in first.err
    assert "left out bench_sorting.Suite.time_sorted: asv skipped 1 of its 4" in first.err
    again = perfci(tmp_path, "import", "old", "old/google-benchmark-small.json")
    assert "old: 0 new runs, 11 were there already" in again.out
    assert "google-benchmark, 0 new runs, 1 was there already" in again.out


def test_of_many_that_were_left_out_the_first_are_named_and_the_rest_counted(
    tmp_path: Path,
) -> None:
    file = plain("google-benchmark-small.json")
    failed = {"error_occurred": True, "error_message": "gone"}
    file["benchmarks"] = [{"name": f"b{number}"} | failed for number in range(30)]
    (tmp_path / "x.json").write_text(json.dumps(file))
    done = perfci(tmp_path, "import", "x.json")
    assert "left out b19: gone" in done.err
    assert "b20" not in done.err
    assert "… and 10 more left out" in done.err


def test_what_was_left_out_for_one_reason_is_one_line_a_benchmark(tmp_path: Path) -> None:
    file = plain("asv-2.json")
    columns = ["result", "params", "version"]
    sizes = [str(number) for number in range(1200)]
    file["result_columns"] = columns
    file["results"] = {"a.time_slow": [[None] * 1200, [sizes], "1"], "a.time_odd": [None, [], "1"]}
    (tmp_path / "x.json").write_text(json.dumps(file))
    done = perfci(tmp_path, "import", "x.json")
    why = "asv has no result: it failed, or took too long"
    said = [line.strip() for line in done.err.splitlines() if "left out" in line]
    assert said == [f"left out a.time_slow, 1,200 times: {why}", f"left out a.time_odd: {why}"]


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
