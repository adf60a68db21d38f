"""The structure of an HTML page."""

from __future__ import annotations

import re
from html.parser import HTMLParser

VOID = {"meta", "input", "link", "br", "img"}


class Outline(HTMLParser):
    """Names, headings and addresses of a page; complains about tags that do not match."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.ids: list[str] = []
        self.levels: list[int] = []
        self.targets: list[str] = []
        self.labels: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attributes}
        if tag not in VOID:
            self.open.append(tag)
        self.ids += [given["id"]] if "id" in given else []
        self.levels += [int(tag[1])] if re.fullmatch(r"h\d", tag) else []
        names = ("href", "src", "xlink:href", "action", "data", "poster")
        self.targets += [given[name] for name in names if name in given]
        for name in ("aria-labelledby", "for"):
            self.labels += given.get(name, "").split()

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
