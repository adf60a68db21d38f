"""Sequence diagrams as the documents have them (Mermaid), drawn as SVG: a site without a network.

GitHub draws ``mermaid`` blocks itself. A site would load Mermaid's script from elsewhere, so its
blocks become pictures here, in the colour of the text around them. Of Mermaid's language this knows
what the documents use: participants, messages, notes and one kind of frame (``par`` to ``end``).
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass, field
from html import escape
from textwrap import wrap

BLOCK = re.compile(r"^```mermaid\n(.*?)^```$", re.DOTALL | re.MULTILINE)
PARTICIPANT = re.compile(r"participant (\w+) as (.+)")
MESSAGE = re.compile(r"(\w+)(->>|-->>|-x)(\w+): (.+)")
NOTE = re.compile(r"Note over (\w+)(?:,(\w+))?: (.+)")
FRAME = re.compile(r"par (.+)")

CHARACTER, LINE = 6.6, 16.0  # about the width of a character, and the height of a line
FONT_SIZE = 11  # of letters all of one width
LEAST_GAP, MARGIN = 110.0, 12.0  # between two participants; around all
NOTE_CHARACTERS = 36  # in a line of a note, where its participants are not further apart


@dataclass
class Drawing:
    """Pieces of SVG, and how far they reach."""

    x: dict[str, float]  # where the line of each participant stands
    y: float = 0.0
    pieces: list[str] = field(default_factory=list)
    left: float = 0.0
    right: float = 0.0
    frames: list[tuple[float, str]] = field(default_factory=list)  # that are open: top, label

    def text(self, x: float, y: float, words: str, anchor: str = "middle") -> None:
        half = len(words) * CHARACTER / 2
        shift = {"middle": 0.0, "start": half}[anchor]
        self.reach(x + shift - half, x + shift + half)
        self.pieces.append(
            f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}">{escape(words)}</text>'
        )

    def box(self, left: float, top: float, right: float, bottom: float, look: str = "") -> None:
        self.reach(left, right)
        self.pieces.append(
            f'<rect x="{left:g}" y="{top:g}" width="{right - left:g}" height="{bottom - top:g}" '
            f'fill="none" stroke="currentColor" {look}/>'
        )

    def line(self, start: tuple[float, float], end: tuple[float, float], look: str = "") -> None:
        self.pieces.append(
            f'<line x1="{start[0]:g}" y1="{start[1]:g}" x2="{end[0]:g}" y2="{end[1]:g}" '
            f'stroke="currentColor" {look}/>'
        )

    def reach(self, left: float, right: float) -> None:
        self.left, self.right = min(self.left, left), max(self.right, right)


def drawn(markdown: str) -> str:
    """The text with each block of Mermaid as a picture. Raises ValueError for what is not known."""
    return BLOCK.sub(lambda block: f"<div>\n{sequence_svg(block[1])}\n</div>", markdown)


def sequence_svg(text: str) -> str:
    """One diagram, as the text of an SVG element in one line."""
    first, *lines = [line.strip() for line in text.splitlines() if line.strip()]
    if first != "sequenceDiagram":
        raise ValueError(f"not a sequence diagram: {first}")
    names = {found[1]: found[2] for line in lines if (found := PARTICIPANT.fullmatch(line))}
    steps = [line for line in lines if not PARTICIPANT.fullmatch(line)]
    drawing = Drawing(_places(names, steps))
    for key, name in names.items():
        _head(drawing, drawing.x[key], name)
    drawing.y = 2.4 * LINE
    top = drawing.y - 0.4 * LINE
    for step in steps:
        _step(drawing, step)
    for x in drawing.x.values():
        drawing.line((x, top), (x, drawing.y), 'stroke-opacity="0.25"')
    return _whole(drawing)


def _places(names: dict[str, str], steps: list[str]) -> dict[str, float]:
    """Where participants stand: apart enough for their names and for what they say."""
    keys = list(names)
    gaps = [
        max(LEAST_GAP, (len(names[a]) + len(names[b])) / 2 * CHARACTER + 40)
        for a, b in itertools.pairwise(keys)
    ]
    for found in filter(None, map(MESSAGE.fullmatch, steps)):
        low, high = sorted((keys.index(found[1]), keys.index(found[3])))
        gaps[high - 1] += max(0.0, len(found[4]) * CHARACTER + 24 - sum(gaps[low:high]))
    return {key: sum(gaps[:place]) for place, key in enumerate(keys)}


def _head(drawing: Drawing, x: float, name: str) -> None:
    half = len(name) * CHARACTER / 2 + 8
    drawing.box(x - half, 0, x + half, 1.6 * LINE, 'rx="4"')
    drawing.text(x, 1.1 * LINE, name)


def _step(drawing: Drawing, step: str) -> None:
    if found := MESSAGE.fullmatch(step):
        _message(drawing, *found.groups())
    elif found := NOTE.fullmatch(step):
        _note(drawing, found[1], found[2] or found[1], found[3])
    elif found := FRAME.fullmatch(step):
        drawing.frames.append((drawing.y, found[1]))
        drawing.y += 1.3 * LINE
    elif step == "end" and drawing.frames:
        _frame(drawing, *drawing.frames.pop())
    else:
        raise ValueError(f"nothing known of a sequence diagram: {step}")


def _message(drawing: Drawing, sender: str, arrow: str, receiver: str, words: str) -> None:
    start, end = drawing.x[sender], drawing.x[receiver]
    y = drawing.y + 1.3 * LINE
    drawing.text((start + end) / 2, y - 5, words)
    dashes = 'stroke-dasharray="5 3"' if arrow.startswith("--") else ""
    drawing.line((start, y), (end, y), dashes)
    back = 7.0 if end < start else -7.0
    ends = ((back, -4), (back, 4)) if arrow != "-x" else ((-5, -5), (-5, 5), (5, -5), (5, 5))
    for across, up in ends:
        drawing.line((end, y), (end + across, y + up))
    drawing.y = y + 0.3 * LINE


def _note(drawing: Drawing, first: str, last: str, words: str) -> None:
    left, right = sorted((drawing.x[first], drawing.x[last]))
    lines = wrap(words, max(NOTE_CHARACTERS, int((right - left) / CHARACTER)))
    half = max((right - left) / 2 + 20, max(map(len, lines)) * CHARACTER / 2 + 8)
    middle, top = (left + right) / 2, drawing.y + 0.4 * LINE
    bottom = top + (len(lines) + 0.5) * LINE
    drawing.box(middle - half, top, middle + half, bottom, 'stroke-opacity="0.6"')
    for number, line in enumerate(lines):
        drawing.text(middle, top + (number + 0.9) * LINE, line)
    drawing.y = bottom + 0.2 * LINE


def _frame(drawing: Drawing, top: float, label: str) -> None:
    left, right = min(drawing.x.values()) - 30, max(drawing.x.values()) + 30
    drawing.text(left + 6, top + LINE, label, "start")
    drawing.y += 0.5 * LINE
    drawing.box(left, top + 2, right, drawing.y, 'stroke-dasharray="2 3"')
    drawing.y += 0.3 * LINE


def _whole(drawing: Drawing) -> str:
    left, width = drawing.left - MARGIN, drawing.right - drawing.left + 2 * MARGIN
    height = drawing.y + 2 * MARGIN
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="sequence diagram" '
        f'viewBox="{left:g} {-MARGIN:g} {width:g} {height:g}" style="max-width: {width:g}px" '
        f'width="100%" fill="currentColor" font-family="monospace" font-size="{FONT_SIZE}">'
        + "".join(drawing.pieces)
        + "</svg>"
    )
