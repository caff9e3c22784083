"""Installed copies of what the repository has, wherever it lies there: an error; others aren't."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest

from perfci.measure.checkout.git import open_repository
from perfci.measure.checkout.trees import blobs_of, known_blobs
from perfci.measure.provenance.attribution import Provenance, provenance_of
from perfci.measure.provenance.counterparts import Counterparts
from perfci.measure.provenance.events import CodeEvent, CodePlaces
from tests.builders.project import Project
from tests.measure.provenance.installs import Session, benchmark, right, two_sides, venv, wrong

CODE = '"""Sixteen bytes and more."""\nMARKER = "base"\n'
CHANGED = CODE.replace("base", "head")
BENCH = "benchmarks/bench_case.py"


@dataclass
class Installed:
    """A repository with two sides, and a prefix into which its files were copied."""

    project: Project
    site: Path
    sides: dict[str, str] = field(default_factory=dict)

    def commit(self, side: str, **files: str) -> None:
        self.project.commit(side, **files)
        self.sides[side] = self.project.git("rev-parse", "HEAD^{tree}").strip()

    def ran(
        self, *names: str, side: str = "base", how: str = "import", installed: tuple[str, ...] = ()
    ) -> Provenance:
        """Return what it means that ``side`` used these files of the prefix."""
        roots = {name: f"{self.site.parent}/cache/{name}" for name in self.sides}
        root = self.project.folder
        repository = open_repository(root)
        trees = {roots[name]: blobs_of(repository, tree) for name, tree in self.sides.items()}
        counterparts = Counterparts(trees, partial(known_blobs, root))
        listed = [f"{one.name}/" if one.is_dir() else one.name for one in self.site.iterdir()]
        places = CodePlaces(
            root=roots[side],
            checkout=f"{root}/",
            cache=f"{self.site.parent}/cache/",
            own=(f"{roots[side]}/",),
            spared=(),
            python_path=(),
            installed=installed,
            twins=counterparts.also_installed({str(self.site): tuple(listed)}),
            changed=counterparts.changed_names(),
            counterparts=counterparts,
        )
        events = [
            CodeEvent(how, str((self.site / name).resolve()), _module(name)) for name in names
        ]
        seen = [one for one in events if _matters(places, one)]
        return provenance_of(seen, places, (), built=False)


def _module(name: str) -> str:
    return name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _matters(places: CodePlaces, event: CodeEvent) -> bool:
    from perfci.worker.hook.perfci_watch.ownership import Ownership, decoded

    ownership = Ownership(decoded(places.settings("")), in_child=True)
    return ownership.matters(event.how, event.path, event.name)


@pytest.fixture
def installed(tmp_path: Path) -> Installed:
    site = tmp_path / "venv" / "lib" / "site-packages"
    site.mkdir(parents=True)
    return Installed(Project(tmp_path / "project"), site)


def put(installed: Installed, name: str, text: str) -> None:
    file = installed.site / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("third_party/paint/paint/value.py", "paint/value.py"),
        ("vendor/paint/value.py", "paint/value.py"),
        ("external/paint/src/paint/value.py", "paint/value.py"),
        ("dist/paint/value.py", "paint/value.py"),
        ("a/b/c/d/e/f/paint/value.py", "paint/value.py"),
        ("libs/space/acme/paint/value.py", "acme/paint/value.py"),
        ("tools/single.py", "single.py"),
        ("libs/tables/rows.json", "tables/rows.json"),
        ("settings/rows.json", "../../share/paint/rows.json"),
        ("scripts/paint.sh", "../../bin/paint.sh"),
        ("src/implementation/value.py", "renamed/value.py"),
    ],
)
def test_an_installed_copy_of_one_side_is_not_the_other_sides_code(
    installed: Installed, path: str, name: str
) -> None:
    installed.commit("base", **{path: CODE})
    installed.commit("head", **{path: CHANGED})
    put(installed, name, CHANGED)
    how = "import" if name.endswith(".py") else "open"
    (found,) = installed.ran(name, how=how).wrong
    assert found.where == "copy"
    assert path in found.advice
    assert not installed.ran(name, how=how, side="head").wrong


def test_a_copy_of_an_older_revision_is_nobodys_code(installed: Installed) -> None:
    path = "third_party/paint/paint/value.py"
    installed.project.commit("older", **{path: CODE.replace("base", "older")})
    installed.commit("base", **{path: CODE})
    installed.commit("head", **{"README.md": "changed"})
    put(installed, "paint/value.py", CODE.replace("base", "older"))
    for side in ("base", "head"):
        assert [one.where for one in installed.ran("paint/value.py", side=side).wrong] == ["copy"]


def test_a_change_of_a_package_of_which_another_version_is_installed_is_perhaps_wrong(
    installed: Installed,
) -> None:
    path = "third_party/paint/paint/value.py"
    installed.commit("base", **{path: CODE})
    installed.commit("head", **{path: CHANGED})
    put(installed, "paint/value.py", CODE.replace("base", "of nobody's commit"))
    (found,) = installed.ran("paint/value.py").wrong
    assert found.where == "perhaps a copy"
    assert 'python_path = ["third_party/paint"]' not in found.advice  # this tree isn't there
    assert not installed.ran("paint/value.py", installed=("paint",)).wrong


def test_a_compiled_module_whose_sources_change_is_perhaps_wrong(installed: Installed) -> None:
    folder = "third_party/fast"
    files = {f"{folder}/setup.py": "", f"{folder}/fast/__init__.py": "", f"{folder}/fast.cpp": CODE}
    installed.commit("base", **files)
    put(installed, "fast/_C.cpython-312-x86_64-linux-gnu.so", "compiled")
    name = "fast/_C.cpython-312-x86_64-linux-gnu.so"
    assert not installed.ran(name, how="load").wrong
    installed.commit("head", **{f"{folder}/fast.cpp": CHANGED})
    (found,) = installed.ran(name, how="load").wrong
    assert found.where == "perhaps a copy"


@pytest.mark.parametrize("vendored", ["mylib/_vendor/six.py", "mylib/_vendor/six/value.py"])
def test_a_public_library_that_a_package_vendors_may_be_installed_too(
    installed: Installed, vendored: str
) -> None:
    packages = {"mylib/__init__.py": CODE, "mylib/_vendor/__init__.py": "", vendored: CODE}
    installed.commit("base", **packages)
    installed.commit("head", **{vendored: CHANGED})
    name = vendored.removeprefix("mylib/_vendor/")
    put(installed, name, CHANGED)
    assert not installed.ran(name).wrong


def test_a_public_library_of_another_version_than_an_unchanged_copy_is_no_error(
    installed: Installed,
) -> None:
    installed.commit("base", **{"third_party/six/six.py": CODE})
    installed.commit("head", **{"README.md": "changed"})
    put(installed, "six.py", CODE.replace("base", "of another version"))
    assert not installed.ran("six.py").wrong


def test_empty_files_and_licences_accuse_nobody(installed: Installed) -> None:
    files = {"libs/paint/__init__.py": "", "libs/paint/LICENSE": "MIT " * 40}
    installed.commit("base", **files)
    installed.commit("head", **{"libs/paint/__init__.py": CODE, "other/x.py": CODE})
    for name in ("stranger/__init__.py", "stranger/other/__init__.py"):
        put(installed, name, "")
        assert not installed.ran(name).wrong
    put(installed, "stranger/LICENSE", "MIT " * 40)
    assert not installed.ran("stranger/LICENSE", how="open").wrong


def test_a_copy_of_a_submodule_that_moved_is_not_the_other_sides_code(
    installed: Installed, tmp_path: Path
) -> None:
    inner = Project(tmp_path / "inner")
    inner.commit("1", **{"paint/value.py": CODE})
    local = ("-c", "protocol.file.allow=always", "submodule", "--quiet", "add")
    installed.project.git(*local, str(inner.folder), "third_party/paint")
    installed.commit("base", **{"README.md": "base"})
    inner.commit("2", **{"paint/value.py": CHANGED})
    moved = ("-c", "protocol.file.allow=always", "submodule", "--quiet", "update", "--remote")
    installed.project.git(*moved)
    installed.commit("head", **{"README.md": "head"})
    put(installed, "paint/value.py", CHANGED)
    (found,) = installed.ran("paint/value.py").wrong
    assert found.where == "copy"
    assert not installed.ran("paint/value.py", side="head").wrong


@pytest.mark.processes
@pytest.mark.parametrize(
    "work",
    [
        "subprocess.run(['TOOL'], check=True)\nran('a child')",
        "subprocess.run('TOOL', shell=True, check=True)\nran('a shell')",
    ],
    ids=["a child", "a shell"],
)
def test_a_console_script_that_changed_and_is_installed_once_is_an_error(
    project: Project, work: str
) -> None:
    python, _ = venv(project)
    tool = Path(python).with_name("tool")
    tool.write_text(f"#!{python}\nimport sys\nfrom paint import head\nsys.exit(head())\n")
    tool.chmod(0o755)
    declared = "[metadata]\nname = paint\n[options.entry_points]\nconsole_scripts =\n"
    files = {
        BENCH: benchmark(work.replace("TOOL", str(tool))),
        "paint.py": "def base():\n    return 0\n\nhead = base\n",
    }
    two_sides(project, "setup.cfg", {**files, "setup.cfg": f"{declared}    tool = paint:base\n"})
    report = Session(project, python).compare()
    assert 'environment = "own"' in wrong(report)
    assert {one["side"] for one in report["failures"]} == {"base"}


@pytest.mark.processes
@pytest.mark.parametrize(
    ("address", "is_own"),
    [("https://git.example/octo/paint", True), ("https://git.example/octo/tools.git", False)],
)
def test_what_is_installed_from_a_remote_of_the_repository_is_the_projects(
    project: Project, address: str, is_own: bool
) -> None:
    """No commit of this clone has its content, and no file of the project declares its name."""
    project.git("remote", "add", "origin", "git@Git.example:octo/paint.git")
    files = {BENCH: benchmark("import brush\nran(brush.work())"), "README.md": "base"}
    two_sides(project, "README.md", files)
    python, packages = venv(project)
    noted = {"url": address, "vcs_info": {"vcs": "git", "commit_id": "0" * 40}}
    info = packages / "brush-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: brush\nVersion: 1\n")
    (info / "RECORD").write_text("brush/__init__.py,,\n")
    (info / "direct_url.json").write_text(json.dumps(noted))
    (packages / "brush").mkdir()
    (packages / "brush" / "__init__.py").write_text("def work():\n    return 'a branch'\n")
    report = Session(project, python).compare()
    if is_own:
        assert 'Where the installed copy is meant: installed = ["brush"]' in wrong(report)
    else:
        right(report)


@pytest.mark.processes
def test_a_package_of_third_party_that_is_installed_is_an_error(project: Project) -> None:
    path = "third_party/paint/paint/__init__.py"
    text = 'NAME = "a package of the repository"\n\ndef work():\n    return "base"\n'
    two_sides(project, path, {BENCH: benchmark("import paint\nran(paint.work())"), path: text})
    python, packages = venv(project)
    (packages / "paint").mkdir()
    shutil.copy(project.folder / path, packages / "paint")
    (packages / "paint" / "__init__.py").write_text(text.replace("base", "head"))
    report = Session(project, python).compare()
    assert "an installed copy of the project" in wrong(report)
    assert 'Set python_path = ["third_party/paint"]' in wrong(report)
    assert {one["side"] for one in report["failures"]} == {"base"}
