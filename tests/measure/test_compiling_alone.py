"""A compile finds nothing that another case left: a side's first took longer than all others."""

from __future__ import annotations

import pytest

from tests.builders.project import Project

BENCHMARK = """\
import perfci

@perfci.benchmark
def compiling():
    from torch._inductor import config
    assert not config.cpp_cache_precompile_headers, "they lie beside the cache"
    return lambda: None
"""


@pytest.mark.processes
def test_a_worker_compiles_without_headers_that_others_would_share(project: Project) -> None:
    project.write("benchmarks/bench_one.py", BENCHMARK)
    project.commit("base")
    report = project.report("run", "--rounds", "2")
    assert [failure["message"] for failure in report["failures"]] == []
