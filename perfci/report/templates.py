"""Where the templates are: inside an installed perfci, beside the package in a checkout."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import perfci
from perfci.errors import OutsideError

if TYPE_CHECKING:
    from jinja2 import Environment


def template_folder() -> Path:
    """Return the folder of the templates; OutsideError where an installation lacks it."""
    package = Path(perfci.__file__).parent
    for folder in (package / "templates", package.parent / "templates"):
        if (folder / "comment.md.j2").is_file():
            return folder
    raise OutsideError(
        "no-templates",
        f"{package} lacks its templates",
        "Install perfci again: pip install --force-reinstall perfci",
    )


def read_template(name: str) -> str:
    """Return the text of one template; OutsideError where it can't be read."""
    path = template_folder() / name
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise OutsideError(
            "no-template",
            f"{path} can't be read: {error.strerror}",
            "Install perfci again: pip install --force-reinstall perfci",
        ) from error


def render_html(name: str, context: Mapping[str, Any]) -> bytes:
    """Return the HTML that a template makes; what is not Markup is escaped by the engine itself."""
    text = _html().get_template(name).render(context)
    return text.encode("utf-8", "backslashreplace")


@cache
def _html() -> Environment:
    return template_environment()


def template_environment(**more: Any) -> Environment:
    """Return an environment of our templates: what isn't Markup is escaped, and all is defined."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    return Environment(
        autoescape=True,
        loader=FunctionLoader(read_template),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        **more,
    )
