"""What a selection says in sentences: the decision, the formula, what would change it, warnings."""

from __future__ import annotations

from math import inf, isnan

from cprsim.results.words import hours, percent, significant, suited
from cprsim.selector.choice import Candidate, Flip, Selection
from cprsim.selector.limit import Limit
from cprsim.selector.words import quantity_of, saving
from cprsim.staleness import WHOLE

BEYOND_FRACTION = 0.01  # of the replications: when to warn of what was not measured


def sentences(selection: Selection) -> list[list[str]]:
    """Paragraphs, those with nothing to say left out."""
    paragraphs = [
        decision(selection),
        alike(selection),
        by_stand_ins(selection),
        formula(selection),
        flips(selection),
        drawn(selection),
        left_out(selection),
        warnings(selection),
        known(selection),
    ]
    return [paragraph for paragraph in paragraphs if paragraph]


def decision(selection: Selection) -> list[str]:
    """What is recommended, and why."""
    chosen, full = selection.chosen, selection.full
    if not selection.fell_back:
        return [f"Recommended: {chosen.strategy}, {saving(chosen)}. {_gain(selection)}"]
    if full.finished_fraction < 1:
        return [
            f"Recommended: nothing. Under full recovery {percent(full.finished_fraction)} of the "
            "jobs finish, and no strategy within the limit does better."
        ]
    return [
        f"Recommended: full recovery, {saving(full)}, at {percent(full.overhead.mean)} of useful "
        f"time. {_why_full(selection)}"
    ]


def _gain(selection: Selection) -> str:
    chosen, full, what = selection.chosen, selection.full, quantity_of(selection.limit)
    costs = f"It costs {percent(chosen.overhead.mean)} of useful time"
    if full.finished_fraction < 1:
        against = (
            f", while under full recovery {percent(full.finished_fraction)} of the jobs finish"
        )
    else:
        less, low, high = suited(*chosen.benefit.times(100).triple)
        share = percent(chosen.benefit.mean / full.overhead.mean)
        against = (
            f", {less} percentage points ({low} to {high}) less "
            f"than full recovery at its best ({saving(full)}): {share} of its overhead is removed"
        )
    if not chosen.policy.leaves_stale:
        return f"{costs}{against}. It loses no samples."
    if what == "PLS":
        return f"{costs}{against}. Expected PLS: {chosen.pls.mean:.3g}."
    loss, low, high = suited(*chosen.loss.triple)
    return (
        f"{costs}{against}. Expected PLS: {chosen.pls.mean:.3g}; expected {what}: "
        f"{loss} (95 % interval {low} to {high})."
    )


def alike(selection: Selection) -> list[str]:
    """Which strategies are as good, as far as is known, and what plain partial recovery costs."""
    chosen, best, said = selection.chosen, selection.best, []
    others = [one for name in selection.alike if (one := best[name]) is not None]
    if len(others) > 1:
        names = ", ".join(one.strategy for one in others if one is not chosen)
        apart = max(abs(_more_points(one, chosen)) for one in others)
        said.append(
            f"Not told apart from {chosen.strategy}: {names}. By the curve's 95 % intervals they "
            f"lose as much, and overheads differ by at most {significant(apart)} percentage "
            "points: the simplest is taken."
        )
    plain = best.get(WHOLE)
    if chosen.policy.sub_saves is not None and plain is not None:
        more = significant(_more_points(plain, chosen))
        said.append(f"partial costs {more} percentage points more, and needs no saver by priority.")
    return said


def _more_points(one: Candidate, other: Candidate) -> float:
    return 100 * (one.overhead.mean - other.overhead.mean)


def by_stand_ins(selection: Selection) -> list[str]:
    """That a shipped curve is of another model, and what the choice would be by the others."""
    found = sorted({*selection.stand_ins, selection.chosen.policy.interval_h})
    if not selection.stand_ins:
        return []
    over = " to ".join(dict.fromkeys(_drawn_interval(end) for end in (found[0], found[-1])))
    return [
        f"The curve is a stand-in: it was measured on a small model, not on yours (`cprsim "
        f"measure`). Over the {len(selection.stand_ins) + 1} shipped curves the interval of "
        f"{selection.chosen.strategy} is {over}."
    ]


def known(selection: Selection) -> list[str]:
    """Among which candidates this is the best."""
    return [
        f"Compared: {', '.join(['full', *selection.best])}; of recovery systems those that the "
        "scenario lists. `cprsim systems` compares every system for the same job."
    ]


def _why_full(selection: Selection) -> str:
    there = [
        one for one in selection.best.values() if one is not None and one.finished_fraction == 1
    ]
    if not selection.best:
        return "Nothing else is compared: list recovery systems under `recovery` in the scenario."
    if not there and not selection.limited:
        return "Under no recovery system that is compared do all jobs finish."
    if not there:
        nothing = " Only full recovery loses nothing." if selection.limit.most == 0 else ""
        return f"No strategy keeps the limit at an interval that is worth its saves.{nothing}"
    nearest = max(there, key=lambda one: one.benefit.mean)
    _, low, high = suited(*nearest.benefit.times(100).triple)
    within = "Within the limit the" if selection.limited else "Of the others the"
    if nearest.benefit.high < 0:
        return (
            f"{within} cheapest is {nearest.strategy}, {saving(nearest)}, and it costs "
            f"more: {percent(nearest.overhead.mean)}."
        )
    if nearest.pays:
        return (
            f"{within} cheapest is {nearest.strategy}, {saving(nearest)}, at "
            f"{percent(nearest.overhead.mean)}; it costs accuracy that nothing here prices."
        )
    return (
        f"{within} cheapest is {nearest.strategy}, {saving(nearest)}, and it does not "
        f"surely cost less: by {low} to {high} percentage points (95 % interval)."
    )


def formula(selection: Selection) -> list[str]:
    """What the paper's interval would do."""
    limit = selection.limit
    return [_of_formula(one, limit) for one in selection.formula]


def _of_formula(one: Candidate, limit: Limit) -> str:
    form = "as published, undivided" if one.rule == "cpr-undivided" else "2 PLS N T_fail / k"
    if isnan(one.held):
        does = "at which not every job finishes"
    else:
        verdict = "keeps the limit" if one.keeps else "does not keep the limit"
        does = f"which {verdict} ({one.held:.3g} at the upper bound)"
    every = hours(one.policy.interval_h)
    length = f"{every}, longer than the job" if one.n_saves == 0 else every
    return f"The paper's formula for the interval, {form}, gives {length}, {does}."


def flips(selection: Selection) -> list[str]:
    """Which input would have to change, and to what, for the decision to be another."""
    other = "full"
    if selection.fell_back:
        other = "another than full" if selection.has_systems else "partial"
    found = [_flip(one) for one in selection.flips if one.at is not None]
    never = [_in_vain(one) for one in selection.flips if one.at is None]
    said = []
    if found:
        said.append(
            f"The decision would be {other} recovery with, one at a time: {'; '.join(found)}."
        )
    if never:
        said.append(f"It would stay the same with: {'; '.join(never)}.")
    return said


def _in_vain(one: Flip) -> str:
    tried = " or ".join(value(end, one.unit) for end in one.furthest)
    return f"{one.name} of {tried or 'any size'} (now {value(one.now, one.unit)})"


def _flip(one: Flip) -> str:
    assert one.at is not None
    return f"{one.name} of {value(one.at, one.unit)} (now {value(one.now, one.unit)})"


def drawn(selection: Selection) -> list[str]:
    """How much of the decision is left as the parameters of the failures are drawn."""
    seen, chosen = selection.drawn, selection.chosen
    if seen is None:
        return []
    sentence = f"{_same_decision(selection)} " if selection.best else ""
    if chosen.is_system and not chosen.option:
        return [sentence.strip()]
    ends = f"{_drawn_interval(seen.low_h)} to {_drawn_interval(seen.high_h)}"
    interval = f"`{chosen.option}`" if chosen.option else "interval"
    draws = "the draws" if selection.best else f"{seen.n} draws of the failures' parameters"
    spread = f"The best {interval} of {chosen.strategy} is {ends} (5 to 95 % of {draws})"
    if selection.fell_back or not chosen.policy.leaves_stale:
        return [f"{sentence}{spread}."]
    kept = f"the one above keeps the limit in {100 * seen.kept_fraction:g} %"
    safe = f"to keep it in 95 % of them, take the shorter end, {_drawn_interval(seen.low_h)}"
    return [f"{sentence}{spread}; {kept}{'' if seen.kept_fraction >= 0.95 else f'; {safe}'}."]


def _same_decision(selection: Selection) -> str:
    """In how many draws the decision holds, where there is one."""
    assert selection.drawn is not None
    between = "for or against" if selection.has_systems else "between partial and"
    return (
        "The failures' parameters have intervals. In "
        f"{100 * selection.drawn.same_fraction:g} % of {selection.drawn.n} draws of them the "
        f"decision {between} full recovery is the same."
    )


def _drawn_interval(interval_h: float) -> str:
    if interval_h == 0:
        return "none that keeps the limit"
    return "no saves" if interval_h == inf else hours(interval_h)


def value(number: float, unit: str) -> str:
    """A value of an input in its unit."""
    if unit == "h":
        return hours(number)
    return f"{number:.3g} {unit}".rstrip()


def left_out(selection: Selection) -> list[str]:
    """Which strategies are not compared, as nothing says what they lose."""
    if not selection.left_out:
        return []
    return [
        f"Not compared: {', '.join(selection.left_out)}. The curve does not say what they lose in "
        f"{quantity_of(selection.limit)}, as they save."
    ]


def warnings(selection: Selection) -> list[str]:
    """What the numbers alone would not tell."""
    said = [f"Warning: {note}" for note in selection.notes]
    shown = [one for one in selection.best.values() if one is not None]
    beyond = [one for one in shown if one.beyond_fraction > BEYOND_FRACTION]
    said += [
        f"Warning: at {one.strategy}'s interval {percent(one.beyond_fraction)} of the jobs lose "
        "more than the curve was measured for; their loss is extrapolated."
        for one in beyond
    ]
    never = [one.strategy for one in shown if one.n_saves == 0 and one.policy.leaves_stale]
    bare = [one.strategy for one in shown if one.n_saves == 0 and one.is_system and one.option]
    if bare:
        said.append(
            f"Warning: {', '.join(bare)} costs least without saves, as what they are for hardly "
            f"comes in {selection.n_replications:,} simulated jobs; such a loss would be of all "
            "that was done."
        )
    if never:
        said.append(f"The limit is so loose that no checkpoint is needed: {', '.join(never)}.")
    return said
