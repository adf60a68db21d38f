"""Sequence diagrams of the documents as the site shows them."""

from __future__ import annotations

import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

DOCS = Path(__file__).parent.parent / "docs"
sys.path.insert(0, str(DOCS))

import sequences  # noqa: E402 (beside the documents, in no package)

SVG = "{http://www.w3.org/2000/svg}"
PAGES = [page.read_text("utf-8") for page in sorted(DOCS.rglob("*.md"))]
BLOCKS = [block for page in PAGES for block in sequences.BLOCK.findall(page)]


@pytest.mark.parametrize("block", BLOCKS, ids=[f"diagram {n}" for n in range(len(BLOCKS))])
def test_a_diagram_of_the_documents_has_all_its_words_within_its_edges(block: str) -> None:
    svg = ElementTree.fromstring(sequences.sequence_svg(block))
    texts = list(svg.iter(f"{SVG}text"))
    words = " ".join(text.text or "" for text in texts)
    for line in block.splitlines():
        said = line.rpartition(": ")[2] if ": " in line else line.partition(" as ")[2]
        assert said in words
    left, top, width, height = map(float, svg.attrib["viewBox"].split())
    for text in texts:
        half = len(text.text or "") * sequences.CHARACTER / 2
        x = float(text.attrib["x"]) + (half if text.attrib["text-anchor"] == "start" else 0)
        assert left <= x - half
        assert x + half <= left + width
        assert top < float(text.attrib["y"]) < top + height


def test_messages_lead_from_sender_to_receiver_and_the_lost_one_ends_in_a_cross() -> None:
    text = "sequenceDiagram\nparticipant A as a\nparticipant B as b\nA->>B: go\nB-xA: lost\n"
    drawn = ElementTree.fromstring(sequences.sequence_svg(text))
    lines = [line.attrib for line in drawn.iter(f"{SVG}line")]
    flat = [float(line["x1"]) < float(line["x2"]) for line in lines if line["y1"] == line["y2"]]
    assert flat == [True, False]
    strokes = [line for line in lines if abs(float(line["x2"]) - float(line["x1"])) == 5]
    assert len(strokes) == 4


def test_blocks_become_pictures_and_other_code_stays() -> None:
    page = "a\n\n```mermaid\nsequenceDiagram\nparticipant A as a\n```\n\n```sh\nls\n```\n"
    drawn = sequences.drawn(page)
    assert "mermaid" not in drawn
    assert "<svg" in drawn
    assert "```sh\nls\n```" in drawn


@pytest.mark.parametrize("text", ["graph TD\n", "sequenceDiagram\nA~~B: what\n"])
def test_what_is_not_known_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="sequence diagram"):
        sequences.sequence_svg(text)
