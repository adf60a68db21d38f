"""What a curve was measured on: the section `kernel` of a scenario, without its seed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Any

from cprsim.scenario.kernel import Kernel


def kernel_block(section: Kernel) -> dict[str, Any]:
    """The resolved section without its seed; a click log by its file name alone."""
    if section.trainer is not None:
        return section.model_dump(mode="json", include={"trainer", "options", "shard_by"})
    block = section.model_dump(mode="json", exclude={"seed", "trainer", "options"})
    if isinstance(block["clicks"], dict):
        block["clicks"]["file"] = PurePath(block["clicks"]["file"]).name
    return block


def different_keys(one: Mapping[str, Any], other: Mapping[str, Any]) -> Iterator[str]:
    """In words, each key that two kernel blocks do not share: ``most_rows (5000, here 20000)``."""
    for key in sorted({*one, *other}):
        if _plain(one.get(key)) != _plain(other.get(key)):
            yield f"{key} ({_plain(one.get(key))}, here {_plain(other.get(key))})"


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: inner for key, inner in value.items() if key != "sha256"}
    return list(value) if isinstance(value, tuple) else value
