"""What would change a decision, in sentences: break-even of each unknown input, joint draws."""

from __future__ import annotations

from cprsim.results.sensitivity import OptionFlip, Sensitivity
from cprsim.results.words import significant


def sensitivity_sentences(sensitivity: Sensitivity) -> list[str]:
    """A sentence for each unknown input, and one for all of them at once."""
    if not sensitivity.n_draws:
        return ["No input is said to be unknown (section 'unknown'), so none is tried."]
    other_options = ", ".join(f"{name} {n:,}" for name, n in sensitivity.others.items())
    draws = (
        f"If all of them vary at once, it is the cheapest of those tried in "
        f"{round(sensitivity.share * sensitivity.n_draws):,} of {sensitivity.n_draws:,} joint draws"
        + (f" (others: {other_options})." if other_options else ".")
    )
    return [*map(_flip, sensitivity.flips), draws]


def _flip(flip: OptionFlip) -> str:
    unit = f" {flip.unit}" if flip.unit else ""
    span = f"{flip.low:.3g} to {flip.high:.3g}{unit}"
    if flip.at is None:
        return f"{flip.key}: no value from {span} reverses it."
    at = f"{significant(flip.at)}{unit}"
    return f"{flip.key} (from {span}): at {at}, {flip.becomes} costs as little."
