"""Where a project's packages lie, and the code in them: each file tells the commit it is of.

A library is written for a marker (1 on base, 2 on head). ``markers()`` of its package returns the
marker of each file that ran, the compiled one and those of packages it imports included.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Literal

Content = Literal["pure", "compiled", "compiled beside"]
"""An extension lies in the package, or beside it as a module of its own."""


@dataclass(frozen=True, slots=True)
class Distribution:
    """What one pyproject.toml in ``folder`` installs: ``package``, whose code is below ``source``.

    ``uses`` is another package of the repository that it imports. ``core`` has the compiled part.
    """

    folder: str
    source: str
    package: str
    uses: str = ""
    core: bool = True

    @property
    def name(self) -> str:
        return self.package.replace(".", "-").replace("_", "-")

    def extension(self, content: Content) -> str:
        """Return the dotted name of the compiled module; empty where there is none."""
        if not self.core or content == "pure":
            return ""
        if content == "compiled":
            return f"{self.package}._speed"
        return f"_speed_of_{self.package.replace('.', '_')}"

    @property
    def package_folder(self) -> PurePosixPath:
        """Relative to the distribution's folder."""
        return PurePosixPath(self.source, *self.package.split("."))


@dataclass(frozen=True, slots=True)
class Layout:
    """``imported`` is the package that benchmarks import. ``neighbour`` is installed beside it."""

    name: str
    distributions: tuple[Distribution, ...]
    imported: str
    neighbour: str = ""


LAYOUTS = (
    Layout("flat", (Distribution(".", ".", "shapes"),), "shapes"),
    Layout("src", (Distribution(".", "src", "shapes"),), "shapes"),
    Layout(
        "monorepo",
        (
            Distribution("packages/core", "src", "shapes_core"),
            Distribution("packages/extra", "src", "shapes_extra", uses="shapes_core", core=False),
        ),
        "shapes_extra",
    ),
    # acme/ has no __init__.py, and another distribution puts acme/other beside acme/shapes
    Layout("namespace", (Distribution(".", "src", "acme.shapes"),), "acme.shapes", "acme.other"),
)

_PURE = """\
from {package}.value import MARKER

def markers():
    return (MARKER,)
"""
_COMPILED = """\
import {extension} as speed
from {package}.value import MARKER

def markers():
    return (MARKER, speed.marker())
"""
_USING = """\
import {uses}
from {package}.value import MARKER

def markers():
    return (MARKER, *{uses}.markers())
"""

_SPEED = """\
#define PY_SSIZE_T_CLEAN
#include <Python.h>

static PyObject *marker(PyObject *self, PyObject *none) {{ return PyLong_FromLong({marker}); }}

static PyMethodDef methods[] = {{
    {{"marker", marker, METH_NOARGS, NULL}}, {{NULL, NULL, 0, NULL}}}};
static struct PyModuleDef definition = {{
    PyModuleDef_HEAD_INIT, "{name}", NULL, -1, methods, NULL, NULL, NULL, NULL}};

PyMODINIT_FUNC PyInit_{name}() {{ return PyModule_Create(&definition); }}
"""


def library(layout: Layout, content: Content, marker: int) -> Iterator[tuple[str, str]]:
    """Return path and text of each file of the library as it is at ``marker``."""
    for one in layout.distributions:
        folder = PurePosixPath(one.folder) / one.package_folder
        extension = one.extension(content)
        text = _USING if one.uses else _COMPILED if extension else _PURE
        text = text.format(package=one.package, uses=one.uses, extension=extension)
        yield f"{folder}/__init__.py", text
        yield f"{folder}/value.py", f"MARKER = {marker}\n"
        if extension:
            name = extension.rpartition(".")[2]
            yield f"{folder}/speed.c", _SPEED.format(marker=marker, name=name)
