"""A command that draws, with its output and its figure, for a document (cog)."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

from shown import block

FIGURES = Path(__file__).parent / "figures"


def shown_with_figure(
    command: str, until: str, keep: str, alternative: str, folder: Path = Path(), figure: str = ""
) -> str:
    """The command, what it prints before `until`, and a figure, kept in ``docs/figures``.

    It is the first whose path ends in `figure`.

    The digest in the comment makes a check of the document fail where the figure has changed.
    """
    printed = subprocess.run(
        ["sh", "-c", command], capture_output=True, text=True, check=True, cwd=folder
    ).stdout
    figures = [one.split()[1] for one in printed.splitlines() if one.startswith("figure ")]
    drawn = next(path for path in figures if path.endswith(figure))
    png = (folder / drawn).read_bytes()
    (FIGURES / keep).write_bytes(png)
    digest = hashlib.sha256(png).hexdigest()[:12]
    picture = f"![{alternative}](figures/{keep}) <!-- {digest} -->\n"
    return f"{block(command, printed.split(until)[0])}\n{picture}"
