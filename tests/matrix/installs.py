"""How a user's checkout comes into a Python: the backends, and what they need in the repository."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.matrix.environment import Environment
from tests.matrix.layouts import Content, Distribution, Layout

Files = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Install:
    """One way to install. ``files`` are those that a distribution needs for it.

    ``left_out`` gives the contents and layouts that this way has not, with the reason.
    """

    name: str
    files: Callable[[Distribution, Content], Files]
    install: Callable[[Environment, Path], None]
    left_out: Mapping[str, str] = field(default_factory=dict)


def _editable(*settings: str) -> Callable[[Environment, Path], None]:
    options = [word for setting in settings for word in ("--config-settings", setting)]

    def install(environment: Environment, folder: Path) -> None:
        environment.install(*options, "--editable", str(folder))

    return install


def _copy(environment: Environment, folder: Path) -> None:
    environment.install(str(folder))


def _in_place(environment: Environment, folder: Path) -> None:
    """Install nothing; compile where the sources lie."""
    if (folder / "setup.py").exists():
        environment.run("setup.py", "--quiet", "build_ext", "--inplace", cwd=folder)


def _path_file(environment: Environment, folder: Path) -> None:
    """What `setup.py develop` left, and what `maturin develop` leaves.

    A .pth file with the sources' folder, and what is compiled beside the sources.
    """
    _in_place(environment, folder)
    source = folder / "src" if (folder / "src").is_dir() else folder
    with (environment.packages / "easy-install.pth").open("a") as file:
        file.write(f"{source}\n")


_PROJECT = """\
[project]
name = "{name}"
version = "1.0"

[build-system]
requires = {requires}
build-backend = "{backend}"
"""


_BACKEND = "setuptools.build_meta"
_SETUPTOOLS = """
[tool.setuptools]
packages = ["{package}"]
package-dir = {{"" = "{source}"}}
"""


def _setuptools(one: Distribution, content: Content) -> Files:
    text = _PROJECT.format(name=one.name, requires='["setuptools"]', backend=_BACKEND)
    text += _SETUPTOOLS.format(package=one.package, source=one.source)
    files = {"pyproject.toml": text}
    if extension := one.extension(content):
        files["setup.py"] = (
            "from setuptools import Extension, setup\n\n"
            f'speed = Extension("{extension}", ["{one.package_folder}/speed.c"])\n'
            "setup(ext_modules=[speed])\n"
        )
    return files


def _top(one: Distribution) -> str:
    """The folder of the distribution's outermost package, relative to it."""
    return str(one.package_folder.parents[one.package.count(".")] / one.package.split(".")[0])


def _hatchling(more: str) -> Callable[[Distribution, Content], Files]:
    def files(one: Distribution, content: Content) -> Files:
        text = _PROJECT.format(name=one.name, requires='["hatchling"]', backend="hatchling.build")
        packages = f'\n[tool.hatch.build.targets.wheel]\npackages = ["{_top(one)}"]\n'
        return {"pyproject.toml": text + packages + more}

    return files


_CMAKE = """\
cmake_minimum_required(VERSION 3.15...4.0)
project(${{SKBUILD_PROJECT_NAME}} LANGUAGES C)
find_package(Python REQUIRED COMPONENTS Interpreter Development.Module)
python_add_library({name} MODULE {folder}/speed.c WITH_SOABI)
install(TARGETS {name} DESTINATION {package})
"""


def _scikit_build(one: Distribution, content: Content) -> Files:
    text = _PROJECT.format(
        name=one.name, requires='["scikit-build-core"]', backend="scikit_build_core.build"
    )
    text += f'\n[tool.scikit-build]\nwheel.packages = ["{_top(one)}"]\n'
    package, name = _inside(one.extension(content))
    if not name:
        return {"pyproject.toml": f"{text}wheel.cmake = false\n"}
    return {
        "pyproject.toml": text,
        "CMakeLists.txt": _CMAKE.format(
            folder=one.package_folder, package=package or ".", name=name
        ),
    }


def _inside(module: str) -> tuple[str, str]:
    """Split a dotted name into its package's folder and the last word."""
    package, _, name = module.rpartition(".")
    return package.replace(".", "/"), name


_MESON = """\
project('{name}'{language}, version: '1.0')
py = import('python').find_installation(pure: {pure})
py.install_sources({sources}, subdir: '{package}')
"""


def _meson(one: Distribution, content: Content) -> Files:
    extension = one.extension(content)
    text = _MESON.format(
        name=one.name,
        language=", 'c'" if extension else "",
        pure="false" if extension else "true",
        sources=[f"{one.package_folder}/__init__.py", f"{one.package_folder}/value.py"],
        package=one.package.replace(".", "/"),
    )
    if extension:
        package, name = _inside(extension)
        text += (
            f"py.extension_module('{name}', '{one.package_folder}/speed.c', "
            f"subdir: '{package}', install: true)\n"
        )
    return {
        "pyproject.toml": _PROJECT.format(
            name=one.name, requires='["meson-python"]', backend="mesonpy"
        ),
        "meson.build": text,
    }


_COMPILES_NOTHING = "hatchling compiles nothing by itself"
_NO_COMPILER = {
    "compiled": _COMPILES_NOTHING,
    "compiled beside": _COMPILES_NOTHING,
}
_NO_NAMESPACE = {"namespace": "editables maps packages with an __init__.py only"}

INSTALLS = (
    Install("nothing installed", _setuptools, _in_place),
    Install("setuptools", _setuptools, _editable()),
    Install("setuptools, strict", _setuptools, _editable("editable_mode=strict")),
    Install("setuptools, compat", _setuptools, _editable("editable_mode=compat")),
    Install("a path file", _setuptools, _path_file),
    Install("hatchling", _hatchling(""), _editable(), _NO_COMPILER),
    Install(
        "hatchling, exact",
        _hatchling("dev-mode-exact = true\n"),
        _editable(),
        _NO_COMPILER | _NO_NAMESPACE,
    ),
    Install("scikit-build-core", _scikit_build, _editable()),
    Install("meson-python", _meson, _editable()),
    Install("a copy", _setuptools, _copy),
)
"""All but the first and the last are editable."""


def install(layout: Layout, how: Install, environment: Environment, root: Path) -> None:
    """Install each distribution of the checkout at ``root``, and what lies beside it."""
    for one in layout.distributions:
        how.install(environment, root / one.folder)
    if layout.neighbour:
        folder = environment.packages / layout.neighbour.replace(".", "/")
        folder.mkdir(parents=True)
        (folder / "__init__.py").touch()
