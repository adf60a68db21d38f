"""Run a notebook and store its outputs: ``python notebooks/remake.py NOTEBOOK``.

``--check`` runs it and says where the words and numbers of its outputs are not those that are
stored. Pixels of figures are not compared: they differ between versions of matplotlib. It runs
without CPRSIM_DATA, whose logs not everybody has.
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
from PIL import Image

PNG = re.compile(r"iVBORw0KGgo[A-Za-z0-9+/=]+")  # in base64, alone or within HTML


def with_few_colours(encoded: str) -> str:
    """A figure in a quarter of the bytes."""
    file = BytesIO()
    with Image.open(BytesIO(base64.b64decode(encoded))) as image:
        image.convert("RGB").quantize(32).save(file, "png", optimize=True)
    return base64.b64encode(file.getvalue()).decode()


*options, name = sys.argv[1:]
path = Path(name)
os.environ.pop("CPRSIM_DATA", None)
stored = path.read_text("utf-8")
notebook = nbformat.reads(stored, as_version=4)
metadata = notebook.metadata.copy()
NotebookClient(
    notebook, resources={"metadata": {"path": str(path.parent)}}, kernel_name="python3",
    timeout=None, record_timing=False, coalesce_streams=True,
).execute()  # fmt: skip
notebook.metadata = metadata
now = PNG.sub(lambda png: with_few_colours(png[0]), nbformat.writes(notebook)) + "\n"
texts = [PNG.sub("", text).splitlines() for text in (stored, now)]
if options != ["--check"]:
    path.write_text(now, "utf-8")
elif differences := list(unified_diff(*texts, "stored", "now", n=1)):
    sys.exit("\n".join([*differences, f"{path}: run: make notebooks"]))
