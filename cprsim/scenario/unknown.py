"""The section `unknown`: inputs that nobody knows exactly, each between two values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from cprsim.errors import ParameterError, ScenarioError
from cprsim.scenario.quantities import Model
from cprsim.scenario.sweep import Values, values_along

if TYPE_CHECKING:
    from cprsim.scenario.loading import LoadedScenario

N_TRIED = 5  # values of an unknown input, where each needs a simulation
N_PRICED = 101  # likewise, where none does
PRICES = "prices."
SECTION = "unknown"


class Unknown(Model):
    """An input that is not known exactly: between which values it lies."""

    low: str | float = Field(description="The least, as the scenario would say it.")
    high: str | float = Field(description="The most, as the scenario would say it.")


def unknown_values(loaded: LoadedScenario) -> dict[str, Values]:
    """The values to try of each unknown input, by key.

    Raises ScenarioError, with the line of the key, for ends that are no two quantities, or that
    make no scenario: a key that there is not, a value that it can't have.
    """
    found = {}
    for key, entry in (loaded.scenario.unknown or {}).items():
        place = loaded.places.get((SECTION, key), loaded.place(SECTION))
        try:
            values = _values(key, str(entry.low), str(entry.high))
        except ParameterError as error:
            raise ScenarioError.at(place, f"low to high {error}", key=f"{SECTION}.{key}") from None
        if values.numbers is None:
            message = "is no quantity between low and high"
            raise ScenarioError.at(place, message, key=f"{SECTION}.{key}")
        for end in (values.written[0], values.written[-1]):
            loaded.varied({key: end}, lambda changed, place=place: place)  # type: ignore[misc]
        found[key] = values
    return found


def _values(key: str, low: str, high: str) -> Values:
    """From the low to the high end; amounts of money keep their label."""
    if not key.startswith(PRICES):
        return values_along(f"{low}:{high}:lin{N_TRIED}")
    (least, label), (most, other) = _amount(low), _amount(high)
    if label != other:
        raise ParameterError(f"mixes `{label or 'no currency'}` and `{other or 'no currency'}`")
    values = values_along(f"{least}:{most}:lin{N_PRICED}")
    written = [f"{number!r} {label}".strip() for number in values.numbers or ()]
    return Values(tuple(written), values.numbers, label, values.logarithmic)


def _amount(text: str) -> tuple[float, str]:
    number, _, label = text.strip().partition(" ")
    try:
        return float(number), label.strip()
    except ValueError:
        raise ParameterError("holds what is no price: write for example 2.50 USD") from None
