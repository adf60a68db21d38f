"""Run a notebook and store its outputs: ``python notebooks/remake.py NOTEBOOK``.

``--check`` runs it and says where the words and numbers of its outputs are not those that are
stored. Of figures it compares that there is one: pixels differ between versions of matplotlib. It
runs without CPRSIM_DATA, whose logs not everybody has.
"""

import base64
import os
import re
import sys
from difflib import unified_diff
from io import BytesIO
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode
from PIL import Image

IN_HTML = re.compile(r"(?<=data:image/png;base64,)[A-Za-z0-9+/=]+")


def said(notebook: NotebookNode) -> list[str]:
    """Lines of all outputs, without the pixels."""
    lines = []
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            lines.append(f"[{cell.id}] {output.output_type}")
            for kind, content in sorted(output.get("data", {"text": output.get("text")}).items()):
                words = "" if kind.startswith("image/") else IN_HTML.sub("", str(content))
                lines += [kind, *words.splitlines()]
    return lines


def with_few_colours(encoded: str) -> str:
    """A figure in a quarter of the bytes."""
    file = BytesIO()
    with Image.open(BytesIO(base64.b64decode(encoded))) as image:
        image.convert("RGB").quantize(32).save(file, "png", optimize=True)
    return base64.b64encode(file.getvalue()).decode()


*options, name = sys.argv[1:]
path = Path(name)
os.environ.pop("CPRSIM_DATA", None)
stored, notebook = (nbformat.read(path, as_version=4) for _ in range(2))
NotebookClient(
    notebook, resources={"metadata": {"path": str(path.parent)}}, kernel_name="python3",
    timeout=None, record_timing=False, coalesce_streams=True,
).execute()  # fmt: skip
notebook.metadata = stored.metadata
for data in (
    one.data for cell in notebook.cells for one in cell.get("outputs", ()) if "data" in one
):
    if "image/png" in data:
        data["image/png"] = with_few_colours(data["image/png"])
    if "text/html" in data:
        data["text/html"] = IN_HTML.sub(lambda png: with_few_colours(png[0]), data["text/html"])
if options != ["--check"]:
    nbformat.write(notebook, path)
elif differences := list(unified_diff(said(stored), said(notebook), "stored", "now", n=1)):
    sys.exit("\n".join([*differences, f"{path}: run: make notebooks"]))
