"""Run a notebook and store its outputs: ``python notebooks/remake.py NOTEBOOK``.

``--check`` runs it and says where the words and numbers of its outputs are not those that are
stored. Of figures it compares that there is one: pixels differ between versions of matplotlib. It
runs without CPRSIM_DATA, whose logs not everybody has.
"""

from __future__ import annotations

import base64
import os
import re
import sys
from collections.abc import Iterator
from difflib import unified_diff
from io import BytesIO
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode
from PIL import Image

IN_HTML = re.compile(r"(?<=data:image/png;base64,)[A-Za-z0-9+/=]+")
COLOURS = 32  # of a stored figure, which takes a quarter of the bytes so


def run(path: Path) -> NotebookNode:
    """The notebook with outputs made now, its metadata as they are stored."""
    notebook = nbformat.read(path, as_version=4)
    metadata = notebook.metadata.copy()
    resources = {"metadata": {"path": str(path.parent)}}
    NotebookClient(
        notebook, resources=resources, kernel_name="python3", timeout=None, record_timing=False,
        coalesce_streams=True,
    ).execute()  # fmt: skip
    notebook.metadata = metadata
    return notebook


def said(notebook: NotebookNode) -> list[str]:
    """Lines of all outputs, without the pixels."""
    lines = []
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            lines.append(f"[{cell.id}] {output.output_type}")
            made = output.get("data", {"text": output.get("text", "")})
            for kind, content in sorted(made.items()):
                lines.append(kind)
                if not kind.startswith("image/"):
                    lines += IN_HTML.sub("", str(content)).splitlines()
    return lines


def shrink(notebook: NotebookNode) -> None:
    """Give the figures few colours."""
    for data in _bundles(notebook):
        if "image/png" in data:
            data["image/png"] = _with_few_colours(data["image/png"])
        if "text/html" in data:
            data["text/html"] = IN_HTML.sub(
                lambda found: _with_few_colours(found[0]), data["text/html"]
            )


def _bundles(notebook: NotebookNode) -> Iterator[NotebookNode]:
    for cell in notebook.cells:
        yield from (output.data for output in cell.get("outputs", ()) if "data" in output)


def _with_few_colours(encoded: str) -> str:
    file = BytesIO()
    with Image.open(BytesIO(base64.b64decode(encoded))) as image:
        image.convert("RGB").quantize(COLOURS).save(file, "png", optimize=True)
    return base64.b64encode(file.getvalue()).decode()


def main() -> None:
    """Run one notebook; exit code 1 where `--check` finds a difference."""
    *options, name = sys.argv[1:]
    path = Path(name)
    os.environ.pop("CPRSIM_DATA", None)
    made = run(path)
    if options != ["--check"]:
        shrink(made)
        nbformat.write(made, path)
        return
    stored = said(nbformat.read(path, as_version=4))
    if differences := list(unified_diff(stored, said(made), "stored", "now", n=1, lineterm="")):
        print(*differences, f"{path}: run: make notebooks", sep="\n")
        sys.exit(1)


if __name__ == "__main__":
    main()
