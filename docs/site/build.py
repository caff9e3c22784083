"""Build the documentation's site: the pages of docs/, the API from its docstrings, the keys of the
configuration from their schema. A link that leads nowhere, or any other warning, fails it.

    python docs/site/build.py OUTPUT

The pages are written for a repository's browser, so that their links lead to files: what the site
doesn't have is linked there.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

from sphinx.cmd.build import build_main

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
LINK = re.compile(r"(\])\((?!#)([^)\s]+)\)")
PAGES = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "reporting.md",
}


def main(output: str) -> int:
    """Write the site to the folder ``output``; return 0 where nothing was wrong."""
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch)
        assemble(source)
        kept = str(Path(output) / ".doctrees")
        return build_main(["-b", "html", "-W", "--keep-going", "-q", "-d", kept, scratch, output])


def assemble(source: Path) -> None:
    """Fill the folder ``source`` with all that the site is made of."""
    shutil.copytree(
        ROOT / "docs", source, ignore=shutil.ignore_patterns("site"), dirs_exist_ok=True
    )
    for name in ("conf.py", "reference.md"):
        shutil.copy(HERE / name, source)
    for name, page in PAGES.items():
        shutil.copy(ROOT / name, source / page)
    schema = json.loads((ROOT / "schemas" / "perfci.schema.json").read_text(encoding="utf-8"))
    (source / "keys.md").write_text("\n".join(keys(schema)), encoding="utf-8")
    repository = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]["Source"]
    for page in source.rglob("*.md"):
        text = page.read_text(encoding="utf-8")
        page.write_text(linked(text, page, source, f"{repository}/blob/main"), encoding="utf-8")
    with (source / "index.md").open("a", encoding="utf-8") as index:
        index.write((HERE / "contents.md").read_text(encoding="utf-8"))


def linked(text: str, page: Path, source: Path, repository: str) -> str:
    """Return a page whose links lead to pages of the site, or else to the repository."""
    folder = page.parent.relative_to(source)
    at = Path("docs") / folder if page.name not in PAGES.values() else Path()

    def link(match: re.Match[str]) -> str:
        file, hash_, anchor = match[2].partition("#")
        if not file or "://" in file:
            return match[0]
        target = (ROOT / at / file).resolve().relative_to(ROOT)
        if target.parts[0] == "docs" and (ROOT / target).is_file():
            inside = target.relative_to("docs")
        elif str(target) in PAGES:
            inside = Path(PAGES[str(target)])
        else:
            return f"{match[1]}({repository}/{target}{hash_}{anchor})"
        up = "../" * len(folder.parts)
        return f"{match[1]}({up}{inside}{hash_}{anchor})"

    return LINK.sub(link, text)


def keys(schema: dict[str, Any]) -> list[str]:
    """Return the lines of the page of the configuration's keys, made of their JSON Schema."""
    lines = ["# Keys of the configuration", "", schema["description"], ""]
    for name, key in schema["properties"].items():
        lines += [f"## `{name}`", "", key.get("description", ""), "", *described(key)]
        within = key.get("properties", {})
        lines += [f"- `{name}.{one}`: {sub.get('description', '')}" for one, sub in within.items()]
        lines.append("")
    return lines


def described(key: dict[str, Any]) -> list[str]:
    """Return what values a key takes, as items of a list."""
    kind = key.get("type", "one of several")
    said = [f"- takes: {' or '.join(kind) if isinstance(kind, list) else kind}"]
    said += [f"- one of: {', '.join(f'`{one}`' for one in key['enum'])}"] if "enum" in key else []
    said += [f"- at least: {key['minimum']}"] if "minimum" in key else []
    said += [f"- default: `{json.dumps(key['default'])}`"] if "default" in key else []
    return said


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
