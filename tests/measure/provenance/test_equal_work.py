"""Being watched costs both sides the same: their workers make the same calls on files."""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path

import pytest

from tests.builders.project import QUICK, Project

pytestmark = pytest.mark.processes

MODULES = 500
COUNTER = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Write one byte per call into the file of this process's side. */
static void count(void) {
  static int (*next)(const char *, int, ...);
  static int file = -1;
  const char *watch = getenv("PERFCI_WATCH");
  if (!watch) return;
  if (!next) next = dlsym(RTLD_NEXT, "open");
  if (file < 0) {
    char path[4096];
    const char *side = strstr(watch, "/ran/head-") ? "head" : "base";
    snprintf(path, sizeof path, "%s/%s", FOLDER, side);
    file = fcntl(next(path, O_WRONLY | O_APPEND | O_CREAT, 0600), F_DUPFD_CLOEXEC, 700);
  }
  if (write(file, ".", 1) != 1) abort();
}

#define COUNTED(name, parameters, arguments)                       \
  int name parameters {                                            \
    static int(*next) parameters;                                  \
    if (!next) next = (int(*) parameters)dlsym(RTLD_NEXT, #name);  \
    count();                                                       \
    return next arguments;                                         \
  }
#define OPENED(name)                                               \
  int name(const char *path, int flags, ...) {                     \
    static int (*next)(const char *, int, ...);                    \
    va_list rest;                                                  \
    va_start(rest, flags);                                         \
    int mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, int) : 0; \
    va_end(rest);                                                  \
    if (!next) next = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, #name); \
    count();                                                       \
    return next(path, flags, mode);                                \
  }
OPENED(open)
OPENED(open64)
COUNTED(stat, (const char *path, struct stat *to), (path, to))
COUNTED(stat64, (const char *path, struct stat64 *to), (path, to))
COUNTED(lstat, (const char *path, struct stat *to), (path, to))
COUNTED(lstat64, (const char *path, struct stat64 *to), (path, to))
COUNTED(fstatat, (int at, const char *path, struct stat *to, int flags), (at, path, to, flags))
COUNTED(fstatat64, (int at, const char *path, struct stat64 *to, int flags), (at, path, to, flags))
COUNTED(access, (const char *path, int mode), (path, mode))
"""


def test_workers_of_both_sides_make_the_same_calls_on_files(tmp_path: Path) -> None:
    """Commits that differ in a docstring: which of them is head must not matter."""
    project = Project(tmp_path / "project")
    counts = tmp_path / "counts"
    counts.mkdir()
    counter = tmp_path / "counter.so"
    command = ["gcc", "-shared", "-fPIC", "-xc", "-o", str(counter), "-"]
    source = COUNTER.replace("FOLDER", f'"{counts}"')
    subprocess.run(command, input=source.encode(), check=True)
    launcher = f'launcher = ["env", "LD_PRELOAD={counter}"]\n'
    few = QUICK.replace("rounds = 5\nmax_rounds = 9", "rounds = 2\nmax_rounds = 2")
    project.write("pyproject.toml", few + launcher)
    files = {f"big/part{number}.py": f"VALUE = {number}\n" for number in range(MODULES)}
    files["big/__init__.py"] = "".join(
        f"from big import part{number}\n" for number in range(MODULES)
    )
    files["benchmarks/bench_big.py"] = (
        "import big\nimport perfci\n\n@perfci.benchmark\ndef case():\n"
        "    return lambda: big.part0.VALUE\n"
    )
    project.commit("base", **files)
    project.commit("head", **{"big/part7.py": '"""A docstring."""\nVALUE = 7\n'})
    report = project.report("compare", "HEAD~1", "HEAD", "--all")
    assert not report["failures"]
    calls = Counter({side: (counts / side).stat().st_size for side in ("base", "head")})
    assert calls["base"] > 10 * MODULES
    assert calls["head"] == pytest.approx(calls["base"], rel=0.01), calls
