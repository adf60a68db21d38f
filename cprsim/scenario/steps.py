"""Intervals that an entry of `recovery` writes as training steps: ``every: 10 steps``.

They become times, by `job.step`, before the schema reads them; so what is dumped of a scenario
holds times.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

from cprsim.errors import ParameterError
from cprsim.units import IN_STEPS, TIME


def with_times(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """The data with times in place of steps; as it is without `job.step`."""
    job = data.get("job")
    step = job.get("step") if isinstance(job, Mapping) else None
    try:
        step_h = TIME.parse(str(step))
    except ParameterError:
        return data  # what is wrong with it is told by the schema
    made = deepcopy(dict(data))
    for section, key in _intervals(made.get("recovery")):
        value = section.get(key) if isinstance(section, dict) else None
        if isinstance(value, str) and (match := re.fullmatch(IN_STEPS, value)):
            section[key] = f"{float(match[1]) * step_h!r} h"
    return made


def _intervals(entries: object) -> Iterator[tuple[Any, str]]:
    """Where an interval may stand: of an entry, of a system's options, of a policy's captures."""
    for entry in entries if isinstance(entries, list) else ():
        if not isinstance(entry, dict):
            continue
        yield entry, "interval"
        options = entry.get("options")
        if not isinstance(options, dict):
            continue
        yield from ((options, key) for key in list(options))
        captures = options.get("captures")
        yield from ((one, "every") for one in (captures if isinstance(captures, list) else ()))
