"""Build the documentation's site from the pages of docs/. A broken link or any warning fails it.

    python docs/site/build.py OUTPUT

docs/README.md gives the order of the pages. They are written for a repository's browser, so their
links lead to files. Files that the site doesn't have are linked in the repository.
"""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
import tomllib
from pathlib import Path

from sphinx.cmd.build import build_main

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
LINK = re.compile(r"(\])\((?!#)([^)\s]+)\)")
ITEM = re.compile(r"^(?:\d+\.|-) \[([^\]]+)\]\(([^)]+)\)", re.MULTILINE)
PAGES = {
    "README.md": "index.md",
    "docs/README.md": "index.md",
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
    skipped = shutil.ignore_patterns("site", "*.toml", "*.json")
    shutil.copytree(ROOT / "docs", source, ignore=skipped, dirs_exist_ok=True)
    order = contents((source / "README.md").read_text(encoding="utf-8"))
    (source / "README.md").unlink()
    shutil.copy(HERE / "conf.py", source)
    for name, page in PAGES.items():
        if not name.startswith("docs/"):
            shutil.copy(ROOT / name, source / page)
    repository = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]["Source"]
    for page in source.rglob("*.md"):
        text = linked(page.read_text(encoding="utf-8"), page, source, f"{repository}/blob/main")
        if page.parent.name == "results":
            text = aside(page.name) + text
        page.write_text(text, encoding="utf-8")
    with (source / "index.md").open("a", encoding="utf-8") as index:
        index.write(order)


def contents(text: str) -> str:
    """Return the site's navigation: a list of pages for each section of docs/README.md."""
    lists = []
    for section in text.split("\n## ")[1:]:
        title = section.partition("\n")[0]
        numbered = ":numbered: 1\n" if title == "Guide" else ""
        pages = [f"{words} <{_place(file)}>" for words, file in ITEM.findall(section)]
        names = "\n".join(pages)
        lists.append(f"```{{toctree}}\n:hidden:\n:caption: {title}\n{numbered}\n{names}\n```\n")
    return "\n" + "\n".join(lists)


def _place(file: str) -> str:
    """Return a page's place in the site, from its place relative to docs/."""
    return PAGES.get(file.removeprefix("../"), file).removesuffix(".md")


def aside(name: str) -> str:
    """Return what keeps a page of results out of the search, and all but their list out of the
    navigation."""
    orphan = "" if name == "README.md" else "orphan: true\n"
    return f"---\nnosearch: true\n{orphan}---\n\n"


def linked(text: str, page: Path, source: Path, repository: str) -> str:
    """Return a page whose links lead to pages of the site, or else to the repository."""
    folder = page.parent.relative_to(source)
    at = Path("docs") / folder if page.name not in PAGES.values() else Path()

    def link(match: re.Match[str]) -> str:
        file, hash_, anchor = match[2].partition("#")
        if not file or "://" in file:
            return match[0]
        target = (ROOT / at / file).resolve().relative_to(ROOT)
        if str(target) in PAGES:
            inside = Path(PAGES[str(target)])
        elif target.parts[0] == "docs" and (ROOT / target).is_file():
            inside = target.relative_to("docs")
        else:
            return f"{match[1]}({repository}/{target}{hash_}{anchor})"
        up = "../" * len(folder.parts)
        return f"{match[1]}({up}{inside}{hash_}{anchor})"

    return LINK.sub(link, text)


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
