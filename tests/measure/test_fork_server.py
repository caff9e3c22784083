"""When both sides may have one fork server, and what it imports, from what discovery saw."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from perfci.errors import Unusable
from perfci.measure.executor import ServerImports
from perfci.measure.fork_servers import compiler_in, preload_of, unlike_reason
from perfci.model.words import words
from perfci.model.worker import Discovery, FileImports
from perfci.worker.imports import DYNAMO, INDUCTOR, require_same_environment

FILE = "benchmarks/bench_one.py"
LOADED = {"torch": "/lib/torch.py", "numpy": "/lib/numpy.py", "torch.nn": "/lib/nn.py", "os": ""}


def side(*modules: str, loaded: dict[str, str] = LOADED, **did: tuple[str, ...]) -> Discovery:
    imports = FileImports(("perfci", *modules), **did)
    return Discovery((), (), {}, imports={FILE: imports}, modules=loaded)


def test_what_both_sides_ask_for_is_imported_in_bases_order() -> None:
    sides = {"base": side("torch", "numpy", "os"), "head": side("os", "torch", "torch.nn")}
    assert preload_of(sides, FILE) == ("torch", "os")
    assert preload_of({"head": sides["head"]}, FILE) == ("os", "torch", "torch.nn")


def test_a_name_that_a_side_has_from_elsewhere_is_left_to_each_side() -> None:
    own = {**LOADED, "numpy": "/tree/numpy.py"}
    sides = {"base": side("torch", "numpy"), "head": side("torch", "numpy", loaded=own)}
    assert preload_of(sides, FILE) == ("torch",)


@pytest.mark.parametrize(
    ("head", "reason"),
    [
        (replace(side("torch"), imports={}), "the imports of head are not known"),
        (replace(side("torch"), devices=("tpu",)), "the sides have different devices installed"),
    ],
)
def test_imports_that_depend_on_the_side_have_no_fork_server(head: Discovery, reason: str) -> None:
    why = preload_of({"base": side("torch"), "head": head}, FILE)
    assert not isinstance(why, tuple)
    assert words(why).startswith(reason)


@pytest.mark.parametrize(
    ("preloaded", "reason"),
    [
        (
            ServerImports({"torch": "/lib/torch.py"}, FileImports(), "no torch"),
            "a library cannot be",
        ),
        (
            ServerImports({"torch": "/lib/other.py"}, FileImports(), ""),
            "base has another `torch`",
        ),
        (ServerImports({"yaml": "/lib/yaml.py"}, FileImports(), ""), "base has another `yaml`"),
        (ServerImports({}, FileImports(), ""), "head sets the variable OMP_NUM_THREADS as it"),
    ],
)
def test_a_fork_server_that_is_another_process_than_a_fresh_one_is_refused(
    preloaded: ServerImports, reason: str
) -> None:
    head = side("torch", environment=("OMP_NUM_THREADS=4",))
    why = unlike_reason(preloaded, {"base": side("torch"), "head": head}, FILE)
    assert why is not None
    assert words(why).startswith(reason)


def test_a_fork_server_that_did_what_fresh_processes_did_is_accepted() -> None:
    did = side("torch", environment=("BY_TORCH=1",))
    preloaded = ServerImports(
        {"torch": "/lib/torch.py", "perfci.api": "/x"}, FileImports(environment=("BY_TORCH=1",)), ""
    )
    assert unlike_reason(preloaded, {"base": did, "head": did}, FILE) is None


@pytest.mark.parametrize("asked_for", ["compiler", "missing"])
def test_a_package_that_libraries_use_and_a_side_has_in_its_tree_is_its_own(
    asked_for: str,
) -> None:
    preloaded = ServerImports({}, FileImports(), "", **{asked_for: ("mpmath", "sympy")})
    sides = {"base": side("torch"), "head": side("torch")}
    assert unlike_reason(preloaded, sides, FILE) is None
    why = unlike_reason(preloaded, sides, FILE, lambda name: "head" if name == "sympy" else "")
    assert why is not None
    assert words(why) == "head has another `sympy`"


def test_what_inductor_sets_as_it_compiles_is_no_change_that_set_up_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = dict(os.environ)
    monkeypatch.setenv("_TORCHINDUCTOR_PYOBJECT_TENSOR_DATA_PTR", "140000")
    require_same_environment(before)
    monkeypatch.setenv("TORCHINDUCTOR_CPP_WRAPPER", "1")
    with pytest.raises(Unusable, match="TORCHINDUCTOR_CPP_WRAPPER"):
        require_same_environment(before)


def test_kernels_of_a_round_with_an_empty_cache_show_that_inductor_was_used() -> None:
    first, cached = {"captured_calls": 5.0, "generated_kernels": 13.0}, {"captured_calls": 5.0}
    assert compiler_in([first, cached]) == (DYNAMO, INDUCTOR)
    assert compiler_in([cached]) == (DYNAMO,)
    assert compiler_in([{}]) == ()
