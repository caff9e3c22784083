"""Markdown as a browser would get it: which elements there are, and the text of each cell."""

from __future__ import annotations

from html.parser import HTMLParser


class Rendered(HTMLParser):
    """A page: its elements, those within code, its cells' text, all text, and text outside code."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.within_code: set[str] = set()
        self.cells: list[str] = []
        self.plain = ""
        self.everything = ""
        self._open: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if "code" in self._open:
            self.within_code.add(tag)
        self._open.append(tag)
        if tag == "td":
            self.cells.append("")

    def handle_endtag(self, tag: str) -> None:
        if tag in self._open:
            while self._open.pop() != tag:
                pass

    def handle_comment(self, data: str) -> None:
        self.tags.append("comment")

    def handle_data(self, data: str) -> None:
        self.everything += data
        if "td" in self._open:
            self.cells[-1] += data
        if "code" not in self._open and "pre" not in self._open:
            self.plain += data


def with_markdown_it(text: str) -> Rendered:
    """Render with the CommonMark of markdown-it, tables and strike-through."""
    from markdown_it import MarkdownIt

    return Rendered(MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(text))


def with_cmark_gfm(text: str) -> Rendered:
    """Render with GitHub's own cmark, raw HTML kept as GitHub keeps what it allows."""
    import cmarkgfm
    from cmarkgfm.cmark import Options

    page = cmarkgfm.github_flavored_markdown_to_html(text, options=Options.CMARK_OPT_UNSAFE)
    return Rendered(page)
