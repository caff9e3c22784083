"""What an import record sees: real modules, imported from folders of their own."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from perfci.model.worker import FileImports, WorkOrder
from perfci.worker.imports import ImportRecord, import_libraries
from perfci.worker.loading import load


class Folders:
    """A side's tree, and a folder of libraries on the path."""

    def __init__(self, tmp_path: Path) -> None:
        self.tree, self.libraries = tmp_path / "tree", tmp_path / "libraries"
        for folder in (self.tree, self.libraries):
            folder.mkdir()
        self.record = ImportRecord((str(self.tree),))

    def imports(self, **files: str) -> FileImports:
        """Write the files (``lib_…`` are libraries) and return what importing ``bench`` did."""
        for name, text in files.items():
            folder = self.libraries if name.startswith("lib_") else self.tree
            (folder / f"{name}.py").write_text(text, encoding="utf-8")
        importlib.invalidate_caches()
        return self.of(str(self.tree / "bench.py"))

    def of(self, file: str) -> FileImports:
        with self.record.during(file):
            load(file, (str(self.tree),))
        return self.record.of(file)


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Folders]:
    made = Folders(tmp_path)
    before = set(sys.modules)
    monkeypatch.setattr(sys, "path", [str(made.tree), str(made.libraries), *sys.path])
    monkeypatch.chdir(made.tree)
    yield made
    for name in set(sys.modules) - before:
        del sys.modules[name]


def test_the_libraries_that_own_code_asks_for_are_known_in_their_order(folders: Folders) -> None:
    did = folders.imports(
        bench="import lib_b, own\nfrom importlib import metadata\n",
        own="import lib_a\ntry:\n    import lib_missing\nexcept ImportError:\n    pass\n",
        lib_a="import lib_inner",
        lib_b="",
        lib_inner="",
    )
    assert did == FileImports(("lib_b", "lib_a", "importlib", "importlib.metadata"))


def test_what_own_code_and_libraries_do_to_the_environment_is_known(
    folders: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GONE", "here")
    did = folders.imports(
        bench="import own, lib_a", own="import os\nos.environ['OWN'] = '1'; del os.environ['GONE']",
        lib_a="import os\nos.environ['LIBRARYS'] = '2'; os.environ.pop('LIBRARYS')",
    )  # fmt: skip
    monkeypatch.delenv("OWN")
    assert did.environment == ("OWN=1", "GONE", "LIBRARYS=2", "LIBRARYS")


def test_what_a_library_asks_for_in_vain_is_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "asks_in_vain.py").write_text(
        "import importlib.util\nimportlib.util.find_spec('gone_accel')\n"
        "try:\n    import gone_plugin.part\nexcept ImportError:\n    pass\nimport json\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    finders = list(sys.meta_path)
    order = WorkOrder("", (), side="base", preload=("asks_in_vain",))
    answer, _ = import_libraries(order)
    assert {"gone_accel", "gone_plugin"} <= {*answer["missing"]}  # a loaded torch has its own
    assert sys.meta_path == finders
