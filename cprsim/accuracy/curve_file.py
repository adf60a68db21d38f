"""The file of a curve: JSON as `cprsim measure` writes it, or a CSV written by the user.

The JSON ends in a digest of its contents, so that a damaged file is refused.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cprsim.accuracy.curve import StalenessCurve
from cprsim.accuracy.own_curve import read_own
from cprsim.errors import UNUSABLE, CurveError, Place, one_line
from cprsim.files import decode, digest_of, encode, json_text, write_whole

KIND = "cprsim staleness curve"
CURVE_FORMAT = 3


def read_curve(path: Path | str) -> StalenessCurve:
    """Read the file of a curve: ours where it ends in .json, else a CSV of the user's own."""
    path = Path(path)
    if path.suffix.lower() != ".json":
        return StalenessCurve(path.stem, read_own(path))
    plain = _checked(_parsed(path), path)
    try:
        return decode(StalenessCurve, plain)
    except UNUSABLE as error:  # also ParameterError
        reason = one_line(str(error), 200)
        raise _error(path, f"can't be used as a staleness curve: {reason}") from error


def write_curve(path: Path, curve: StalenessCurve) -> None:
    """Write the file whole or not at all, on the disk when this returns."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, json_text(as_json(curve), indent=1))
    except OSError as error:
        raise _error(path, f"can't be written: {error.strerror or error}") from error


def as_json(curve: StalenessCurve) -> dict[str, Any]:
    """The object that the file holds, its digest last."""
    plain = {"kind": KIND, "format": CURVE_FORMAT, "identity": curve.identity, **encode(curve)}
    for response in plain["responses"]:
        (response["settings"] or {}).pop("bytes_share", None)  # what it wrote stands in the checks
    return {**plain, "digest": digest_of(plain)}


def _parsed(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except OSError as error:
        raise _error(path, f"can't be read: {error.strerror or error}") from None
    except (RecursionError, ValueError) as error:
        message = f"is damaged, or no JSON: {one_line(str(error), 200)}"
        raise _error(path, message, getattr(error, "lineno", None)) from None


def _checked(plain: Any, path: Path) -> dict[str, Any]:
    """The object, if it is a curve of this version and undamaged."""
    if not isinstance(plain, dict) or plain.get("kind") != KIND:
        raise _error(path, f"is no staleness curve: `cprsim measure` writes `kind: {KIND}` in it")
    if plain.get("format") != CURVE_FORMAT:
        message = (
            f"has format {one_line(str(plain.get('format')))}, and this cprsim reads format "
            f"{CURVE_FORMAT}: it comes from another version; measure again"
        )
        raise _error(path, message)
    content = {key: value for key, value in plain.items() if key != "digest"}
    if digest_of(content) != plain.get("digest"):
        raise _error(path, "is damaged or was changed by hand: it differs from its digest")
    return plain


def _error(path: Path, message: str, line: int | None = None) -> CurveError:
    return CurveError.at(Place(path, line), message)
