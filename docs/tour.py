"""The recording at the top of the README, from the outputs in docs/outages-to-dollars.md.

``python docs/tour.py`` writes docs/figures/tour.svg, ``--check`` says whether it is up to date. The
page's outputs are held to their commands, so that these are. An SVG that moves by CSS alone; where
nothing may move, all of it is seen at once.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from html import escape
from itertools import accumulate
from pathlib import Path
from textwrap import wrap

DOCS = Path(__file__).parent
PAGE = DOCS / "outages-to-dollars.md"
TOUR = DOCS / "figures" / "tour.svg"
COLUMNS, LINE_PX, COLUMN_PX, EDGE_PX = 100, 19, 8.43, 16
SCENES = (  # what a command begins with; the first words of the lines shown; seconds
    ("head", ("node", "n13"), 3),
    ("cprsim fit", ("A job", "With 95"), 6),
    ("cprsim init", ("mine.yaml",), 5),
    ("cprsim select", ("Recommended",), 6),
    ("cprsim compare-systems", ("Cheapest", "Against", "best ", "today "), 9),
)


def tour() -> str:
    """The recording as SVG."""
    blocks = re.findall(r"```text\n\$ (.*?)\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    screens = [_screen(blocks, begins, first) for begins, first, _ in SCENES]
    starts = list(accumulate((seconds for *_, seconds in SCENES), initial=0))
    rows = list(accumulate((len(typed) + len(said) for typed, said in screens), initial=0))
    width, height = 2 * EDGE_PX + COLUMNS * COLUMN_PX, 2 * EDGE_PX + rows[-1] * LINE_PX
    drawn = [_group(number, rows[number], *screen) for number, screen in enumerate(screens)]
    return "\n".join(
        [
            '<svg xmlns="http://www.w3.org/2000/svg" role="img" '
            f'viewBox="0 0 {width:.0f} {height:.0f}">',
            "<title>From a log of outages to an interval in dollars per month</title>",
            f"<style>{''.join(_styles(starts))}</style>",
            '<rect width="100%" height="100%" rx="8" fill="#1e2430"/>',
            *drawn,
            "</svg>\n",
        ]
    )


def _screen(
    blocks: Sequence[tuple[str, str]], begins: str, first: Sequence[str]
) -> tuple[list[str], list[str]]:
    """Lines of a command, and those lines of its output that are shown."""
    command, printed = next(one for one in blocks if one[0].startswith(begins))
    lines = [line for line in _paragraphs(printed) if line.startswith(tuple(first))]
    assert lines, f"{PAGE}: no output of `{begins}` begins with one of {first}"
    typed = wrap(f"$ {command}", COLUMNS, subsequent_indent="    ")
    return typed, [part for line in lines for part in wrap(line, COLUMNS, drop_whitespace=False)]


def _paragraphs(printed: str) -> list[str]:
    """Lines, with those joined that a page has wrapped."""
    return re.sub(r"(?<=\S)\n(?=[a-z])", _joined, printed).splitlines()


def _joined(end: re.Match[str]) -> str:
    before = end.string[: end.start()].rpartition("\n")[2]
    return " " if len(before) > COLUMNS and "  " not in before else "\n"


def _styles(starts: Sequence[int]) -> Iterator[str]:
    """When each command and its output appear, in percent of the whole."""
    whole = starts[-1]
    yield "text{font:14px ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;white-space:pre}"
    for number, start in enumerate(starts[:-1]):
        for name, seen in ((f"c{number}", start), (f"o{number}", start + 1)):
            at = 100 * seen / whole
            yield f"@keyframes {name}{{0%{{opacity:0}}{at:.2f}%,100%{{opacity:1}}}}"
            yield f".{name}{{animation:{name} {whole}s step-end infinite}}"
    yield "@media (prefers-reduced-motion){g{animation:none!important}}"


def _group(number: int, row: int, typed: Sequence[str], said: Sequence[str]) -> str:
    """A command from a row on, and what is shown of its output."""
    above, below = _texts(typed, row, "#9fd3ff"), _texts(said, row + len(typed), "#e6e9ef")
    return f'<g class="c{number}">{above}</g><g class="o{number}">{below}</g>'


def _texts(lines: Sequence[str], from_row: int, colour: str) -> str:
    return "".join(
        f'<text x="{EDGE_PX}" y="{EDGE_PX + LINE_PX * (row + 0.75):.0f}" fill="{colour}"'
        f' textLength="{len(line) * COLUMN_PX:.0f}" lengthAdjust="spacingAndGlyphs">'
        f"{escape(line, quote=False)}</text>"
        for row, line in enumerate(lines, from_row)
    )


if __name__ == "__main__":
    made = tour()
    if "--check" not in sys.argv:
        TOUR.write_text(made, "utf-8")
    elif not TOUR.is_file() or TOUR.read_text("utf-8") != made:
        sys.exit(f"{TOUR} is not up to date; run: make tour")
