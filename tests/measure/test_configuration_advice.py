"""The line to put into the configuration, guessed from the project."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfci.measure.configuration_advice import ConfigurationAdvice

INPLACE = 'Set build = ["{python} setup.py build_ext --inplace"] in [tool.perfci].'
TARGET = (
    'Set build = ["{python} -m pip install --no-deps --no-build-isolation --target .perfci-build '
    '."] and python_path = [".perfci-build"] in [tool.perfci].'
)


def write(tree: Path, *names: str, text: str = "") -> None:
    for name in names:
        path = tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_setup_py_with_extensions_is_built_in_place(tmp_path: Path) -> None:
    write(tmp_path, "setup.py", text="setup(ext_modules=[Extension('a', ['a.c'])])")
    write(
        tmp_path, "pyproject.toml", text='[build-system]\nbuild-backend = "setuptools.build_meta"'
    )
    assert ConfigurationAdvice(tmp_path).build() == INPLACE


@pytest.mark.parametrize(
    "backend",
    ["scikit_build_core.build", "mesonpy", "maturin", "hatchling.build", "setuptools.build_meta"],
)
def test_other_backends_build_into_a_folder_that_is_imported_from(
    tmp_path: Path, backend: str
) -> None:
    write(tmp_path, "pyproject.toml", text=f'[build-system]\nbuild-backend = "{backend}"')
    assert ConfigurationAdvice(tmp_path).build() == TARGET


def test_what_no_python_project_says_how_to_build_is_left_to_the_user(tmp_path: Path) -> None:
    write(tmp_path, "CMakeLists.txt")
    assert ConfigurationAdvice(tmp_path).build() == (
        "Set `build` in [tool.perfci] to the commands that compile it."
    )


def test_the_project_of_a_monorepo_that_compiles_is_built(tmp_path: Path) -> None:
    write(tmp_path, "libs/pure/pyproject.toml", text='[build-system]\nbuild-backend = "hatchling"')
    write(tmp_path, "libs/fast/setup.py", text="setup(ext_modules=cythonize('a.pyx'))")
    assert (
        "cd libs/fast && {python} setup.py build_ext --inplace"
        in ConfigurationAdvice(tmp_path).build()
    )


@pytest.mark.parametrize(
    ("file", "module", "folder"),
    [
        ("libs/core/core/ops.py", "core.ops", "libs/core"),
        ("libs/core/core/__init__.py", "core", "libs/core"),
        ("libs/core/core/data.txt", "", "libs/core"),
        ("libs/ns/ns/core/ops.py", "ns.core.ops", "libs/ns"),
        ("tools/single.py", "single", "tools"),
    ],
)
def test_the_folder_is_the_one_from_which_the_file_is_imported(
    tmp_path: Path, file: str, module: str, folder: str
) -> None:
    write(tmp_path, file, "libs/core/core/__init__.py")
    assert ConfigurationAdvice(tmp_path, (".", "src")).path(file, module) == (
        f'Set python_path = ["{folder}"] in [tool.perfci].'
    )


def test_folders_that_were_set_are_kept_and_those_of_the_default_with_code(
    tmp_path: Path,
) -> None:
    write(tmp_path, "core/__init__.py", "libs/other/other/__init__.py", "a.py")
    assert ConfigurationAdvice(tmp_path, (".", "src")).path("core/__init__.py", "core") == ""
    told = ConfigurationAdvice(tmp_path, ("lib",)).path("a.py", "a")
    assert told == 'Set python_path = ["lib", "."] in [tool.perfci].'
    told = ConfigurationAdvice(tmp_path, (".", "src", "lib")).package("other")
    assert told == 'Set python_path = [".", "lib", "libs/other"] in [tool.perfci].'
