"""What MkDocs is told beside mkdocs.yml: pages made from the code, and files outside docs/.

Documents link to files of the repository, as readers of the repository need it. In the site such
files stand below ``repository/``, Markdown as a page and everything else as it is.
"""

from __future__ import annotations

import posixpath
import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "docs"))

import reference  # noqa: E402 (beside this file, which is in no package)

OUTSIDE = "repository/"  # where they stand in the site
LINK = re.compile(r"(\]\()([^)#\s:]+)((?:#[^)\s]*)?\))")
COMMENT = re.compile(r"<!--.*?-->\n*", re.DOTALL)


def on_files(files: Files, config: Any) -> Files:
    """Add the reference, and what documents link to outside of docs/."""
    for place, text in reference.pages().items():
        files.append(File.generated(config, place, content=text))
    seen = [one for one in files.documentation_pages() if not one.generated_by]
    waiting = [(f"docs/{one.src_uri}", one.content_string) for one in seen]
    while waiting:
        waiting += _add_linked(*waiting.pop(), files, config)
    return files


def _add_linked(page: str, text: str, files: Files, config: Any) -> list[tuple[str, str]]:
    """Add the files that a page links to; what of them has links too."""
    added = []
    for _, link, _ in LINK.findall(text):
        path = posixpath.normpath(posixpath.join(posixpath.dirname(page), link))
        place = _place(path)
        is_new = place.startswith(OUTSIDE) and not files.get_file_from_path(place)
        if is_new and (ROOT / path).is_file():  # of another one MkDocs says that it is lost
            files.append(File.generated(config, place, abs_src_path=str(ROOT / path)))
            if path.endswith(".md"):
                added.append((path, (ROOT / path).read_text("utf-8")))
    return added


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Links as the site needs them, and nothing of cog."""
    here = page.file.src_uri
    folder = posixpath.dirname(
        here.removeprefix(OUTSIDE) if here.startswith(OUTSIDE) else f"docs/{here}"
    )

    def moved(link: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(folder, link[2]))
        return f"{link[1]}{posixpath.relpath(_place(path), posixpath.dirname(here))}{link[3]}"

    return LINK.sub(moved, COMMENT.sub("", markdown))


def _place(path: str) -> str:
    """Where a file of the repository stands in the site."""
    return path.removeprefix("docs/") if path.startswith("docs/") else f"{OUTSIDE}{path}"
