"""Origin of a curve: section `kernel`, digests and versions, compared with the present ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from os.path import isfile
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from cprsim.errors import ScenarioError
from cprsim.files import sha256_of
from cprsim.scenario.kernel import ClickFile, Kernel
from cprsim.scenario.reading import LoadedScenario

if TYPE_CHECKING:
    from cprsim.accuracy.curve import StalenessCurve


def kernel_block(section: Kernel) -> dict[str, Any]:
    """The resolved section without its seed; a click log by its file name alone."""
    if section.trainer is not None:
        return section.model_dump(mode="json", include={"trainer", "options", "shard_by"})
    block = section.model_dump(mode="json", exclude={"seed", "trainer", "options"})
    if isinstance(block["clicks"], dict):
        block["clicks"]["file"] = PurePath(block["clicks"]["file"]).name
    return block


def different_keys(measured: Mapping[str, Any], asked: Mapping[str, Any]) -> Iterator[str]:
    """In words, each key that two kernel blocks do not share: ``most_rows (5000, here 20000)``."""
    for key in sorted({*measured, *asked}):
        if _plain(measured.get(key)) != _plain(asked.get(key)):
            yield f"{key} ({_plain(measured.get(key))}, here {_plain(asked.get(key))})"


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: inner for key, inner in value.items() if key != "sha256"}
    return list(value) if isinstance(value, tuple) else value


LOG = "clicks.file"  # the key of a click log; a trainer's options have their own


def option_files(options: Mapping[str, Any] | None) -> dict[str, Path]:
    """Options of a trainer that name a file below or from the working directory, by key."""
    by_key = {
        f"options.{key}": value for key, value in (options or {}).items() if isinstance(value, str)
    }
    return {key: Path(value) for key, value in by_key.items() if isfile(value)}


def digests_of(files: Mapping[str, Path]) -> dict[str, str]:
    """SHA-256 of each file, by key."""
    return {key: sha256_of(path) for key, path in files.items()}


def other_files(curve: StalenessCurve, loaded: LoadedScenario) -> dict[str, str]:
    """Digests of the files of a scenario that are not those of the curve, by key."""
    measured = _measured(curve)
    files = {key: path for key, path in _files(loaded).items() if key in measured}
    return {key: digest for key, digest in digests_of(files).items() if digest != measured[key]}


def _measured(curve: StalenessCurve) -> dict[str, str]:
    clicks = (curve.kernel or {}).get("clicks")
    log = clicks.get("sha256") if isinstance(clicks, Mapping) else None
    of_trainer = (curve.manifest.get("trainer") or {}).get("files") or {}
    return {**({LOG: log} if log else {}), **of_trainer}


def _files(loaded: LoadedScenario) -> dict[str, Path]:
    kernel = loaded.scenario.kernel
    if kernel is None:
        return {}
    if isinstance(kernel.clicks, ClickFile):
        with suppress(ScenarioError):  # it is on another machine
            return {LOG: loaded.input_file(kernel.clicks.file, f"kernel.{LOG}", "a click log")}
    return option_files(kernel.options)
