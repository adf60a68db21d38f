"""How a command ends: one JSON object for scripts, or what a terminal shows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cprsim.cli.saying import say, say_json

if TYPE_CHECKING:
    from cprsim.present.document import Block, Document


def show(
    plain: Callable[[], Any],
    blocks: Callable[[], Sequence[Block]],
    *,
    as_json: bool,
    files: Iterable[Path] = (),
) -> None:
    """Print one of two, which alone is made."""
    if as_json:
        say_json(plain())
        return
    from cprsim.cli.terminal import Terminal
    from cprsim.present import terminal

    terminal.show(Terminal(), blocks())
    for file in files:
        say(file)


def write_document(document: Document, file: Path) -> Path:
    """Write a document as a page of its own; the file."""
    from cprsim.present.document import ResultsPage
    from cprsim.present.writing import write_page

    return write_page(ResultsPage.of(document), file)[0]
