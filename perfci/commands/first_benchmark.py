"""The first benchmark that ``init`` writes, for a model of the package.

The package's source is parsed. Nothing of it is imported.
"""

from __future__ import annotations

import ast
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeGuard

from perfci.commands.workflows import new_file_template

_MOST_FILES = 1000
"""Most files of a package that are parsed."""
_LONGEST_SOURCE = 1 << 20
"""Bytes of the largest file that is parsed."""
_MODULES = {"nn.Module", "torch.nn.Module", "Module"}
"""Base classes of a torch module, as source code writes them."""
_ABSTRACT = {"ABC", "abc.ABC", "Protocol"}
"""Base classes that make a class abstract, as source code writes them."""
_SIZE = 64
"""The value for a size that has no default."""
_INPUTS = {
    "Linear": "torch.randn(batch, {})",
    "Conv1d": "torch.randn(batch, {}, 256)",
    "Conv2d": "torch.randn(batch, {}, 64, 64)",
    "Conv3d": "torch.randn(batch, {}, 16, 64, 64)",
    "Embedding": "torch.randint(0, {}, (batch, 32))",
}
"""An input for a first layer, by the layer's first argument."""
_DEEPEST = 5
"""Most levels of base classes, or of parts inside of parts, that are followed."""
_Sizes = Mapping[str, object]
"""The values of parameters by name, as far as the source shows them."""


@dataclass(frozen=True, slots=True)
class Model:
    """A torch module of a package, and whether an ``__init__.py`` exports it.

    ``arguments`` construct it and ``inputs`` call it, both as source text. Each is "..." if the
    source of the class doesn't show enough.
    """

    module: str
    name: str
    exported: bool
    arguments: str = "..."
    inputs: str = "..."

    @property
    def runs(self) -> bool:
        """Return whether both the arguments and the inputs are known."""
        return "..." not in (self.arguments, self.inputs)


def first_benchmark(package: Path | None) -> str:
    """Return the text of a benchmark for the first model in ``package``.

    In a package without models, the benchmark imports the package. Without a package, it has a
    small model of its own.
    """
    if package is None:
        return new_file_template("bench_model.py.j2").render()
    models = package_models(package)
    if not models:
        return new_file_template("bench_package.py.j2").render(package=package.name)
    return new_file_template("bench_own_model.py.j2").render(
        package=package.name, model=models[0], others=[model.name for model in models[1:6]]
    )


def package_models(package: Path) -> tuple[Model, ...]:
    """Return the package's concrete models, the most telling first.

    Exported classes go before others, then whole models before parts of other models, then models
    that can be called as written before others.
    """
    classes = _module_classes(package)
    exports = _exports(package)
    parts = {
        name
        for owner, (_, node) in classes.items()
        for name in _names(node)
        if name in classes and name != owner
    }
    models = [
        _model(exports.get(name, module), node, classes, exported=name in exports)
        for name, (module, node) in classes.items()
        if not (name.startswith("_") or _is_abstract(node))
    ]
    models.sort(key=lambda model: _rank(model, parts))
    return tuple(models)


def _rank(model: Model, parts: Container[str]) -> tuple[bool, bool, bool, int]:
    return (not model.exported, model.name in parts, not model.runs, model.module.count("."))


def _module_classes(package: Path) -> dict[str, tuple[str, ast.ClassDef]]:
    """Return the subclasses of ``torch.nn.Module`` by name, with the modules that define them."""
    classes: dict[str, tuple[str, ast.ClassDef]] = {}
    for path in sorted(package.rglob("*.py"))[:_MOST_FILES]:
        inside = path.relative_to(package).with_suffix("").parts
        dotted = ".".join(part for part in (package.name, *inside) if part != "__init__")
        for node in _parsed(path).body:
            if isinstance(node, ast.ClassDef) and "test" not in dotted:
                classes.setdefault(node.name, (dotted, node))

    def is_module(node: ast.ClassDef, depth: int = _DEEPEST) -> bool:
        bases = [ast.unparse(base) for base in node.bases]
        own = (classes[base][1] for base in bases if base in classes)
        return bool(_MODULES.intersection(bases)) or (
            depth > 0 and any(is_module(base, depth - 1) for base in own)
        )

    return {name: defined for name, defined in classes.items() if is_module(defined[1])}


def _parsed(path: Path) -> ast.Module:
    if path.stat().st_size > _LONGEST_SOURCE:
        return ast.Module([], [])
    try:
        return ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):  # another Python's syntax, or none
        return ast.Module([], [])


def _exports(package: Path) -> dict[str, str]:
    """Return by name the outermost package whose ``__init__.py`` imports it."""
    exports: dict[str, str] = {}
    for init in sorted(package.rglob("__init__.py"), key=lambda path: (len(path.parts), path)):
        dotted = ".".join((package.name, *init.relative_to(package).parts[:-1]))
        for node in _parsed(init).body:
            if isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    exports.setdefault(alias.asname or alias.name, dotted)
    return exports


def _names(node: ast.ClassDef) -> Iterator[str]:
    return (part.id for part in ast.walk(node) if isinstance(part, ast.Name))


def _is_abstract(node: ast.ClassDef) -> bool:
    bases = {ast.unparse(base) for base in node.bases}
    metaclass = any(keyword.arg == "metaclass" for keyword in node.keywords)
    decorators = {
        ast.unparse(decorator).rpartition(".")[2]
        for method in node.body
        if isinstance(method, ast.FunctionDef)
        for decorator in method.decorator_list
    }
    named = node.name.endswith("Base") or node.name.startswith(("Base", "Abstract"))
    return named or metaclass or bool(_ABSTRACT & bases) or "abstractmethod" in decorators


def _model(
    module: str,
    node: ast.ClassDef,
    classes: Mapping[str, tuple[str, ast.ClassDef]],
    *,
    exported: bool,
) -> Model:
    arguments = _arguments(node)
    if arguments is None:
        return Model(module, node.name, exported)
    text = ", ".join(f"{name}={size}" for name, size in arguments.items())
    sizes = {**_defaults(node), **arguments}
    return Model(module, node.name, exported, text, _inputs(node, sizes, classes, _DEEPEST))


def _method(node: ast.ClassDef, name: str) -> ast.FunctionDef | None:
    methods = (part for part in node.body if isinstance(part, ast.FunctionDef))
    return next((method for method in methods if method.name == name), None)


def _required(method: ast.FunctionDef) -> list[ast.arg]:
    """Return the parameters without a default, but for ``self``."""
    arguments = method.args
    positional = [*arguments.posonlyargs, *arguments.args]
    pairs = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    keywords = [argument for argument, default in pairs if default is None]
    return [*positional[1 : len(positional) - len(arguments.defaults)], *keywords]


def _arguments(node: ast.ClassDef) -> dict[str, int] | None:
    """Return the sizes that construct a model, or None if it needs arguments of another kind."""
    method = _method(node, "__init__")
    if method is None:
        return {} if any(ast.unparse(base) in _MODULES for base in node.bases) else None
    required = _required(method)
    kinds = {ast.unparse(argument.annotation) for argument in required if argument.annotation}
    return {argument.arg: _SIZE for argument in required} if kinds <= {"int"} else None


def _defaults(node: ast.ClassDef) -> dict[str, object]:
    method = _method(node, "__init__")
    if method is None:
        return {}
    arguments = method.args
    count = len(arguments.defaults)
    pairs = [
        *zip(arguments.args[len(arguments.args) - count :], arguments.defaults, strict=True),
        *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
    ]
    return {name.arg: value.value for name, value in pairs if isinstance(value, ast.Constant)}


def _inputs(
    node: ast.ClassDef,
    sizes: _Sizes,
    classes: Mapping[str, tuple[str, ast.ClassDef]],
    depth: int,
) -> str:
    """Return the source of an input that fits the first layer, or "..."."""
    forward, method = _method(node, "forward"), _method(node, "__init__")
    if not (depth and forward and method) or len(_required(forward)) != 1:
        return "..."
    calls = [part for part in ast.walk(method) if isinstance(part, ast.Call)]
    calls.sort(key=lambda call: (call.lineno, call.col_offset))
    for call in calls:
        name = ast.unparse(call.func).rpartition(".")[2]
        if name in _INPUTS:
            size = _value(call.args[0], sizes) if call.args else None
            return _INPUTS[name].format(size) if _is_size(size) else "..."
        if name in classes:
            inner = classes[name][1]
            return _inputs(inner, _bound(call, inner, sizes), classes, depth - 1)
    return "..."


def _is_size(value: object) -> TypeGuard[int]:
    return type(value) is int


def _value(node: ast.expr, sizes: _Sizes) -> object:
    if isinstance(node, ast.Name):
        return sizes.get(node.id)
    return node.value if isinstance(node, ast.Constant) else None


def _bound(call: ast.Call, node: ast.ClassDef, sizes: _Sizes) -> _Sizes:
    """Return the values of the parameters of a part that ``call`` constructs, by name."""
    method = _method(node, "__init__")
    names: Sequence[ast.arg] = method.args.args[1:] if method else ()
    positional = {name.arg: _value(value, sizes) for name, value in zip(names, call.args)}  # noqa: B905
    named = {keyword.arg: _value(keyword.value, sizes) for keyword in call.keywords if keyword.arg}
    return {**_defaults(node), **positional, **named}
