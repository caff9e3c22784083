"""Whose file is whose, without a session: what is wrong, what is meant, and what to write."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from perfci.measure.code_guard import (
    CodeEvent,
    CodePlaces,
    CodeUsed,
    WorkerWatch,
    code_used,
    lacking_advice,
    package_advice,
    wrong_code,
)
from perfci.measure.project_names import modules_of, packages_of
from perfci.worker.hook.perfci_watch import CodeWatch

PACKAGES = "lib/python3.12/site-packages"


@pytest.fixture
def places(tmp_path: Path) -> CodePlaces:
    tree = tmp_path / "cache" / "id" / "trees" / "head"
    (tree / "libs" / "core").mkdir(parents=True)
    (tree / "libs" / "core" / "__init__.py").touch()
    return CodePlaces(
        root=str(tree),
        checkout=f"{tmp_path}/checkout/",
        cache=f"{tmp_path}/cache/",
        others=(f"{tmp_path}/cache/id/trees/base/",),
        clones=(f"{tmp_path}/clone/",),
        copies=(f"{tmp_path}/venv/{PACKAGES}/declared/",),
        spared=(f"{tmp_path}/scratch/",),
        pythons=(f"{tmp_path}/venv/", f"{tmp_path}/checkout/.venv/"),
        modules=frozenset({"core", "core.value", "acme.shapes"}),
    )


def used(places: CodePlaces, how: str, path: str, name: str = "") -> CodeUsed:
    """Return what a worker used that used one file; ``path`` is relative to the test's folder."""
    return code_used([CodeEvent(how, str(Path(places.checkout).parent / path), name)], places)


@pytest.mark.parametrize(
    ("how", "path", "name", "where"),
    [
        ("import", "checkout/libs/core/__init__.py", "core", "checkout"),
        ("map", "checkout/libs/core/_C.so", "", "checkout"),
        ("open", "checkout/tools/single.py", "", "checkout"),
        ("import", "cache/id/trees/base/core/__init__.py", "core", "another tree"),
        ("import", "clone/core/__init__.py", "core", "another tree"),
        ("import", f"venv/{PACKAGES}/declared/x.py", "declared.x", "copy"),
        ("import", f"venv/{PACKAGES}/core/value.py", "core.value", "copy"),
        ("import", f"checkout/.venv/{PACKAGES}/acme/shapes/__init__.py", "acme.shapes", "copy"),
    ],
)
def test_what_is_wrong(places: CodePlaces, how: str, path: str, name: str, where: str) -> None:
    (wrong,) = used(places, how, path, name).wrong
    assert wrong.where == where
    assert path.rpartition("/")[2] in wrong_code([wrong], "case", "head", "").message


@pytest.mark.parametrize(
    ("how", "path", "name"),
    [
        ("import", "cache/id/trees/head/libs/core/__init__.py", "core"),
        ("open", "checkout/weights.bin", ""),
        ("import", f"checkout/.venv/{PACKAGES}/torch/__init__.py", "torch"),
        ("import", f"venv/{PACKAGES}/acme/other/__init__.py", "acme.other"),
        ("map", "scratch/caches/head/inductor/k.so", ""),
        ("import", "venv/lib/python3.12/core.py", "core"),
    ],
)
def test_what_is_right(places: CodePlaces, how: str, path: str, name: str) -> None:
    assert not used(places, how, path, name).wrong


def test_the_error_says_what_to_write(places: CodePlaces) -> None:
    (wrong,) = used(places, "import", "checkout/libs/core/__init__.py", "core").wrong
    assert 'Add "libs" to `python_path`' in wrong.advice
    (wrong,) = used(places, "import", f"venv/{PACKAGES}/declared/x.py", "declared.x").wrong
    assert 'installed = ["declared"]' in wrong.advice


@pytest.mark.parametrize(
    ("file", "module", "folder"),
    [
        ("libs/core/__init__.py", "core", "libs"),
        ("libs/core/__init__.py", "core.value", ""),
        ("python/acme/shapes/__init__.py", "acme", "python"),  # packages without __init__.py
        ("python/acme/shapes/__init__.py", "acme.shapes", "python"),
        ("python/acme/shapes/round.py", "acme.shapes.round", "python"),
        ("lib/single.py", "single", "lib"),
        ("src/acme/shapes/__init__.py", "acme.shapes", ""),  # there it is already
        ("tests/acme/test_x.py", "acme", ""),
        ("docs/core/conf.py", "other", ""),
    ],
)
def test_a_folder_for_python_path_is_advised_only_if_the_module_is_imported_from_there(
    tmp_path: Path, file: str, module: str, folder: str
) -> None:
    (tmp_path / file).parent.mkdir(parents=True)
    (tmp_path / file).touch()
    advice = package_advice(str(tmp_path), module, (".", "src"))
    assert advice == (f'Add "{folder}" to `python_path` in [tool.perfci].' if folder else "")


KEPT_OUT = "No module named 'acme.shapes' in the tree that is measured (perfci keeps /x out)"


@pytest.mark.parametrize(
    ("message", "has", "advised"),
    [
        (KEPT_OUT, "python/acme/shapes/__init__.py", 'Add "python" to `python_path`'),
        (KEPT_OUT, "", 'installed = ["acme"]'),
        ("No module named 'acme'", "python/acme/shapes/x.py", 'Add "python" to `python_path`'),
        ("No module named 'acme'", "", "Install acme there"),
        ("No module named 'acme._version'", "acme/__init__.py", "files that git ignores"),
        ("No module named 'acme._version'", "", ""),
        ("No module named 'acme'; 'acme' is not a package", "acme.py", ""),
        ("cannot import name 'x' from 'acme'", "", ""),
        ("attempted relative import with no known parent package", "", "from common import"),
    ],
)
def test_what_is_lacking_gets_advice_that_fits_the_tree(
    tmp_path: Path, message: str, has: str, advised: str
) -> None:
    if has:
        (tmp_path / has).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / has).touch()
    advice = lacking_advice(message, str(tmp_path), (".", "src"), "/usr/bin/python3")
    assert advised in advice
    assert bool(advice) == bool(advised)


def test_an_installed_copy_that_is_meant_is_right_and_known(places: CodePlaces) -> None:
    meant = replace(places, installed=("declared",))
    found = used(meant, "import", f"venv/{PACKAGES}/declared/x.py", "declared.x")
    assert not found.wrong
    assert [module.name for module in found.elsewhere] == ["declared.x"]


def test_a_module_that_was_kept_out_is_wrong_where_the_side_should_have_it(
    places: CodePlaces,
) -> None:
    assert used(places, "kept out", "checkout/libs/core/__init__.py", "core").wrong
    assert not used(places, "kept out", "checkout/newer/__init__.py", "newer").wrong
    library = ("kept out", "checkout/core/_C.so", "core._C")
    assert "`build`" in used(places, *library).wrong[0].advice
    assert not used(replace(places, built=True), *library).wrong


@pytest.mark.parametrize("how", ["import", "map", "open"])
@pytest.mark.parametrize(
    ("path", "written", "wrong"),
    [
        ("home/lib/w.so", 1001, True),  # since the session began
        ("home/lib/w.py", 1001, True),
        ("home/lib/w.so", 510, True),  # by a build that was kept, of another session
        ("home/lib/w.so", 530, False),  # by nobody here
        ("home/lib/w.so", 490, False),
        ("home/.cache/kernels/w.so", 1001, False),
        ("home/.cache/kernels/w.so", 510, True),
        (f"elsewhere/{PACKAGES}/other/w.so", 1001, False),
        ("scratch/w.so", 1001, False),
    ],
)
def test_what_a_build_or_the_session_wrote_outside_of_both_trees_is_no_sides_own(
    places: CodePlaces, tmp_path: Path, how: str, path: str, written: int, wrong: bool
) -> None:
    later = 4_000_000_000  # than all else that this process loaded
    places = replace(places, began=later + 1000, builds=((later + 500, later + 520),))
    file = tmp_path / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch()
    os.utime(file, (later, later + written))
    (tmp_path / "scratch").mkdir(exist_ok=True)
    watch = WorkerWatch(tmp_path / "scratch" / "record", places, openings=True)
    watch.begin()
    (text,) = watch.environment().values()
    assert bool(used(places, how, path).wrong) is wrong
    there = CodeWatch(text)
    there.audited("open", (str(file), "r", 0))
    there.look()
    assert bool(watch.used().wrong) is wrong, "the watch tells of it, too"


def test_what_a_watch_writes_is_read(places: CodePlaces, tmp_path: Path) -> None:
    (tmp_path / "scratch").mkdir()
    watch = WorkerWatch(tmp_path / "scratch" / "record", places, openings=True)
    watch.begin()
    (text,) = watch.environment().values()
    there = CodeWatch(text)
    own = f"{places.root}/libs/core/__init__.py"
    there.audited("open", (own, "r", 0))
    there.audited("open", (f"{places.root}/written", "w", 1))
    there.audited("subprocess.Popen", ("ls", [], None, None))
    there.look()
    found = watch.used()
    assert (found.own, found.started) == ({"libs/core/__init__.py"}, True)
    assert not watch.record.exists()


def test_the_projects_modules_are_those_that_can_be_imported() -> None:
    files = ("src/acme/shapes/__init__.py", "src/acme/shapes/value.py", "tests/yaml.py")
    files += ("src/single.py", "tools/attention.py", "setup.py", "third_party/six/__init__.py")
    assert modules_of(files, ()) >= {"acme.shapes", "shapes", "acme.shapes.value", "single"}
    assert modules_of(files, ()).isdisjoint({"value", "yaml", "attention", "setup", "six"})


def test_examples_named_as_other_peoples_packages_are_not_the_projects(tmp_path: Path) -> None:
    for name in ("src/core", "libs/extra", "examples/yaml", "benchmarks/numpy"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "__init__.py").touch()
    assert packages_of(tmp_path, ("src",)) == ("core", "extra")
    assert packages_of(tmp_path, ("src", "examples")) == ("core", "extra", "yaml")
