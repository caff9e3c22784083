"""Each way in which a benchmark can meet a change: whatever only it can see must be measured."""

from __future__ import annotations

import socket
import sqlite3
import subprocess
import threading
import zipfile
from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.builders.project import NOISE_PASSES, QUICK, Project, one_round, rows
from tests.measure.provenance.installs import brief

pytestmark = pytest.mark.processes

HEADER = """\
import ctypes, glob, importlib.machinery, importlib.metadata, importlib.resources, importlib.util
import mmap, multiprocessing, os, pkgutil
import posix, site, socket, sqlite3, subprocess, sys
from pathlib import Path
import perfci

C = ctypes.CDLL(None)

def by_c(path):
    descriptor = C.open(os.fsencode(path), 0)
    C.read(descriptor, ctypes.create_string_buffer(99), 99)
    C.close(descriptor)

def in_vain(look, path):
    try:
        look(path)
    except OSError:
        pass

def spawned(*words):
    import _posixsubprocess
    ready, told = os.pipe()
    words = [os.fsencode(word) for word in words]
    nothing = (-1, -1, -1, -1, -1, -1, ready, told, False, False, -1, None, None, None, -1, None)
    os.waitpid(
        _posixsubprocess.fork_exec(words, words[:1], True, (), None, None, *nothing, True), 0
    )

def import_and_forge():
    import pkg.forged
    del sys.modules["pkg.forged"]
    file = dict(one.split("\\x1f") for one in os.environ["PERFCI_WATCH"].split("\\x1e")
                if one.startswith("events\\x1f"))["events"]
    Path(file).write_text(f"watched\\x1f\\x1f{os.getpid()}\\0")
"""
CASE = """
@perfci.benchmark(metrics=["latency_p50"])
def {name}():
    {body}
    return lambda: sum(range(100))
"""
WAYS = {
    "opened": "Path('data/opened').read_text()",
    "opened_below": (
        "os.close(os.open('opened_below', 0, dir_fd=os.open('data', os.O_DIRECTORY)))"
    ),
    "mapped": "mmap.mmap(os.open('data/mapped', 0), 0, prot=mmap.PROT_READ).close()",
    "read_by_c": "by_c('data/read_by_c')",
    "read_by_c_in_a_fork": (
        "(os.fork() or (by_c('data/read_by_c_in_a_fork'), C._exit(0))) and os.wait()"
    ),
    "linked": "os.link('data/linked', 'data/another'); by_c('data/another'); "
    "os.unlink('data/another')",
    "read_by_python": (
        "subprocess.run([sys.executable, '-c', \"open('data/read_by_python')\"], check=True)"
    ),
    "read_by_a_program": "subprocess.run(['cat', 'data/read_by_a_program'], check=True)",
    "read_by_a_shell": "os.system('read x < data/read_by_a_shell')",
    "told_by_git": "subprocess.run(['git', 'describe', '--always'], check=True)",
    "git_read_by_c": "by_c('.git')",
    "told_by_a_server": "socket.create_connection(('127.0.0.1', PORT)).close()",
    "database": "sqlite3.connect('data/database.sqlite').execute('select * from t').fetchall()",
    "library": "ctypes.CDLL('./data/library.so')",
    "library_loaded_by_c": "C.dlopen(b'data/library_loaded_by_c.so', 2)",
    "archive": "sys.path.insert(0, 'data/archive.zip'); import within",
    "path_file": "site.addsitedir('data/site')",
    "resource": "importlib.resources.files('pkg').joinpath('resource').read_text()",
    "entry_point": "[one for one in importlib.metadata.entry_points(group='ways')]",
    "distribution": "importlib.metadata.version('renamed')",
    "imported": "import pkg.imported",
    "looked_for_and_there": "os.path.exists('data/added')",
    "looked_for_by_access": "os.access('data/added', os.R_OK)",
    "looked_for_by_pathlib": "Path('data', 'added').is_file()",
    "looked_for_as_a_module": "importlib.util.find_spec('pkg.added')",
    "looked_for_by_a_finder": "importlib.machinery.PathFinder.find_spec('added', ['pkg'])",
    "looked_for_as_a_namespace": "importlib.util.find_spec('pkg.added_folder')",
    "looked_for_elsewhere": "os.chdir('data'); os.path.exists('added'); os.chdir('..')",
    "looked_for_by_posix": "in_vain(posix.stat, 'data/added')",
    "access_by_c": "C.access(b'data/added', 0)",
    "listed_by_c": "C.opendir(b'data/folder')",
    "looked_for_by_a_fork": "os.fork() or (C.access(b'data/added', 0), C._exit(0)); os.wait()",
    "looked_for_by_cs_program": "C.system(b'test -e data/added')",
    "looked_for_by_a_spawned_program": "spawned('/usr/bin/test', '-e', 'data/added')",
    "looked_for_by_python": (
        "subprocess.run([sys.executable, '-c', 'import posix; posix.access(\"data/added\", 0)'])"
    ),
    "looked_for_by_a_python_without_the_library": (
        "subprocess.run([sys.executable, '-c', ''], env={**os.environ, 'LD_PRELOAD': ''})"
    ),
    "asked_for_its_size": "os.path.getsize('data/asked_for_its_size')",
    "listed": "os.listdir('data/folder')",
    "listed_the_tree": "os.listdir()",
    "listed_by_glob": "glob.glob('data/folder/*')",
    "walked": "[one for one in os.walk('data')]",
    "sizes_scanned": "sum(one.stat().st_size for one in os.scandir('data/scanned'))",
    "kinds_scanned": "[one for one in os.scandir('data/kinds') if one.is_dir()]",
    "modules_listed": "[one for one in pkgutil.iter_modules(['pkg'])]",
    "forged": "import_and_forge()",
}
UNSEEN = {
    "nothing": "pass",
    "imports_what_is_the_same": "import pkg.same",
    "opens_what_is_the_same": "by_c('data/same'); Path('data/same').read_text()",
    "lists_what_is_the_same": "os.listdir('data/same_folder')",
    "asks_for_what_is_the_same": "os.path.exists('data/same'), os.path.exists('data/never')",
    "asks_for_what_is_no_name": "os.path.exists('word ' * 99), in_vain(open, 'word ' * 99)",
    "asks_below_a_file": "os.path.exists('data/same/below')",
    "asks_what_has_another_content": "os.path.getsize('data/same_size')",
    "asks_for_modules_that_are_the_same": (
        "[importlib.util.find_spec(one) for one in ('pkg.same', 'pkg.never', 'never')]"
    ),
    "starts_a_python_that_imports": (
        "subprocess.run([sys.executable, '-c', 'import pkg.same'], check=True)"
    ),
    "spawns": "child = multiprocessing.get_context('spawn').Process(target=len, args=([],)); "
    # on a busy machine a tracker that still lives may not have said yet that it is watched
    "child.start(); child.join(); multiprocessing.resource_tracker._resource_tracker._stop()",
}
# the peak of the children that some ways start depends on when they are looked at
MEMORY_PASSES = """
[tool.perfci.metrics.peak_host_memory]
threshold = "900%"
"""
ON_BOTH = {
    "data/same": "1",
    "data/same_folder/one": "1",
    "pkg/__init__.py": "",
    "pkg/same.py": "x = 1\n",
    "data/folder/one": "1",
    "data/kinds/one": "1",
    "renamed-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: renamed\nVersion: 1.0\n",
    "ways.egg-info/PKG-INFO": "Metadata-Version: 2.1\nName: ways\nVersion: 1.0\n",
}


@pytest.fixture
def server() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=_serve, args=(listening,), daemon=True).start()
        yield listening.getsockname()[1]


def _serve(listening: socket.socket) -> None:
    while True:
        try:
            listening.accept()[0].close()
        except OSError:
            return


def _change(project: Project, value: str) -> None:
    """Write what each way can see, and no other: it has another content for another ``value``."""
    for way in ("opened", "opened_below", "mapped", "read_by_c", "read_by_c_in_a_fork", "linked"):
        project.write(f"data/{way}", value)
    for way in ("python", "a_program", "a_shell"):
        project.write(f"data/read_by_{way}", value)
    project.write("data/asked_for_its_size", value)
    project.write("data/scanned/one", value)
    project.write("data/same_size", value[0])
    project.write("data/site/own.pth", f"# {value}\n")
    project.write("pkg/resource", value)
    project.write("pkg/imported.py", f"x = {value}\n")
    project.write("pkg/forged.py", f"x = {value}\n")
    project.write("ways.egg-info/entry_points.txt", f"[ways]\none = within:x{value}\n")
    data = project.folder / "data"
    with zipfile.ZipFile(data / "archive.zip", "w") as archive:
        archive.writestr("within.py", f"x = {value}\n")
    (data / "database.sqlite").unlink(missing_ok=True)
    with closing(sqlite3.connect(data / "database.sqlite")) as database:
        database.execute(f"create table t as select {value} as x")
        database.commit()
    for library in ("library", "library_loaded_by_c"):
        subprocess.run(
            ["gcc", "-shared", "-fPIC", "-xc", "-o", str(data / f"{library}.so"), "-"],
            input=f"int k(void) {{ return {value}; }}".encode(),
            check=True,
        )


def test_whatever_only_one_way_can_see_is_measured_and_the_rest_is_the_same(
    project: Project, server: int
) -> None:
    cases = [CASE.format(name=name, body=body) for name, body in {**WAYS, **UNSEEN}.items()]
    text = HEADER.replace("PORT", str(server)) + "".join(cases).replace("PORT", str(server))
    at_import = HEADER + "by_c('data/read_by_c')\n" + CASE.format(name="at_import", body="pass")
    _change(project, "10")
    project.write("pyproject.toml", brief(QUICK) + NOISE_PASSES + MEMORY_PASSES)
    project.commit(
        "base",
        **{"benchmarks/bench_ways.py": text, "benchmarks/bench_at_import.py": at_import},
        **ON_BOTH,
    )
    _change(project, "200")
    (project.folder / "data/kinds/one").unlink()
    project.write("data/kinds/one/two", "")
    project.git("mv", "renamed-1.0.dist-info", "renamed-2.0.dist-info")
    added = (
        *("data/added", "data/added_folder/one", "data/folder/two", "pkg/added.py"),
        *("pkg/added_folder/one", "unused.py", "README.md"),
    )
    project.commit("head", **dict.fromkeys(added, ""))

    with one_round():
        report = project.report("compare", "HEAD~1", "HEAD")

    assert not report["failures"]
    methods = {
        case: rows(report, case)["latency_p50"]["method"] for case in (*WAYS, *UNSEEN, "at_import")
    }
    assert {case for case, method in methods.items() if method == "same_code"} == {*UNSEEN}
