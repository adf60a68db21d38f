"""The curve of a scenario: the one that it names, else a shipped one of the same kernel.

The shipped ones come with the program, each with the command and the manifest that made it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cache
from os.path import isfile
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from cprsim.accuracy.curve_file import read_curve
from cprsim.errors import ScenarioError, choices
from cprsim.files import SHIPPED_CURVES, digest_of, sha256_of
from cprsim.scenario.kernel import ClickFile, Kernel
from cprsim.scenario.reading import LoadedScenario

if TYPE_CHECKING:
    from cprsim.accuracy.curve import StalenessCurve

CURVE_KEY = "accuracy.curve"
CURVE_SOURCE = (
    "a staleness curve: the JSON that `cprsim measure` writes, or a CSV of your own "
    "(docs/staleness.md)"
)
FILES = (".json", ".csv")


def chosen_curve(loaded: LoadedScenario) -> StalenessCurve | None:
    """The curve that prices a scenario's losses; None where none applies."""
    path = curve_path(loaded)
    if path is None:
        return None
    file = read_curve(path)
    is_named = loaded.scenario.accuracy is not None and loaded.scenario.accuracy.curve is not None
    curve = replace(file, origin=_origin(file, path, is_named), notes=tuple(_notes(file, loaded)))
    n_samples = loaded.scenario.job.samples
    return curve if n_samples is None else curve.at_length(n_samples)


def curve_path(loaded: LoadedScenario) -> Path | None:
    """The file of the curve that applies; see `chosen_curve`."""
    accuracy = loaded.scenario.accuracy
    if accuracy is not None and accuracy.curve is not None:
        return _named_path(loaded, accuracy.curve)
    kernel = loaded.scenario.kernel
    if kernel is None:
        return None
    identity = digest_of(kernel_block(kernel))
    return next((shipped_path(n) for n in shipped_names() if shipped(n).identity == identity), None)


def _named_path(loaded: LoadedScenario, name: str) -> Path:
    if name in shipped_names():
        return shipped_path(name)
    if not name.lower().endswith(FILES):
        suggestion = choices(name, shipped_names())
        message = f"`{name}` is neither a shipped curve nor a file (.json, .csv). {suggestion}"
        raise loaded.error(CURVE_KEY, message)
    return loaded.input_file(name, CURVE_KEY, CURVE_SOURCE)


def _origin(file: StalenessCurve, path: Path, is_named: bool) -> str:
    if file.kernel is None:
        return f"your own, {path.name}"
    where = "shipped" if path == shipped_path(path.stem) else path.name
    why = "" if is_named else ", measured on this section `kernel`"
    return f"{where}{why}, by `{file.command}`"


def _notes(file: StalenessCurve, loaded: LoadedScenario) -> Iterator[str]:
    """Yield warnings about the use of the curve, in sentences."""
    kernel, name = loaded.scenario.kernel, f"The curve {file.name}"
    if file.unfit:
        yield f"{name} is NOT FIT FOR USE: {'; '.join(file.unfit)}."
    differs = [] if kernel is None else different_keys(file.kernel or {}, kernel_block(kernel))
    if file.kernel is not None and (keys := ", ".join(differs)):
        yield (
            f"{name} was measured for another model than this section `kernel`: it differs in "
            f"{keys}."
        )
    if other_data := other_files(file, loaded):
        keys = ", ".join(f"kernel.{key}" for key in other_data)
        yield f"{name} was measured on other data than {keys} holds: digests differ."
    if file.kernel is not None and loaded.scenario.cluster.emb_ps == 1:
        yield (
            "With one embedding server a failure takes back all tables, and the dense layers with "
            f"them; the curve {file.name} was measured with several."
        )


# --------------------------------------------------------------------------- shipped curves


def shipped_names() -> tuple[str, ...]:
    """Names of the shipped curves, sorted."""
    return tuple(sorted(path.stem for path in SHIPPED_CURVES.glob("*.json")))


def fit_curves() -> tuple[StalenessCurve, ...]:
    """The shipped curves that are fit for use."""
    return tuple(curve for curve in map(shipped, shipped_names()) if not curve.unfit)


def shipped_path(name: str) -> Path:
    """Path of a shipped curve's file, which need not exist."""
    return SHIPPED_CURVES / f"{name}.json"


def is_stand_in(loaded: LoadedScenario) -> bool:
    """Whether a shipped curve prices a scenario: it was measured on another model."""
    path = curve_path(loaded)
    return path is not None and path.parent == SHIPPED_CURVES


@cache
def shipped(name: str) -> StalenessCurve:
    """A shipped curve. Raises CurveError for an unknown name."""
    return replace(read_curve(shipped_path(name)), origin="shipped")


# --------------------------------------------------------------------------- what it was made of


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
