"""One HTML file about results: needs no network, and the same results give the same bytes.

A kind of result (`kinds`) says what there is to show, as records (`content`); `rendering` makes
them HTML, and no kind knows HTML.
"""

from __future__ import annotations

from cprsim.page.kinds import KINDS, Kind, page_of
from cprsim.present.html import render
from cprsim.present.writing import write_page

__all__ = ["KINDS", "Kind", "page_of", "render", "write_page"]
