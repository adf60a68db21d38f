"""What CPR's benefit depends on: how often servers fail, how many together, and the target PLS."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cprsim.plots.chart import Chart, Panel, Series
from cprsim.studies.estimates import series
from cprsim.studies.simulated import Simulated, overheads_over, simulate_cases
from cprsim.studies.study import Study, Summary, Work
from cprsim.studies.verdicts import DERIVED, SET_UP_RECALLED, Claim, Tested, about, compare

SCENARIO = "criteo-kaggle.yaml"
N_EMB_PS = 8
COUNTS = (1, 2, 5, 10, 20, 40)
FEW, MANY = 2, COUNTS[-1]
TOGETHER = (1, 2, 4)  # of 8 servers: 12.5, 25 and 50 %
TARGET_PLS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
USUAL = 0.1  # target PLS, recalled
WHOLE = 10  # intervals in the job of the other assumption
STRATEGIES = {
    "full": "full recovery",
    "partial": "naive partial",
    "cpr": "CPR, divided",
    "cpr-undivided": "CPR, undivided",
}
FORMS = {"cpr": "divided", "cpr-undivided": "undivided"}
SHRINKS = "the benefit shrinks as failures become frequent"
REACTS = "CPR then shortens T_save or reverts to full recovery"


def _failing(count: int = 2, together: int = 1, target: float = USUAL) -> list[str]:
    return [
        f"failures={{kind: injected, count: {count}, role: emb_ps, together: {together}}}",
        "recovery=[full, partial, "
        f"{{strategy: cpr, target_pls: {target}}}, "
        "{strategy: cpr, name: cpr-undivided, interval: cpr-undivided, "
        f"target_pls: {target}}}]",
    ]


def _whole_job(together: int) -> list[str]:
    """A job of a whole number of the divided form's intervals, with the same MTBF of 28 h."""
    interval_h = 2 * USUAL * N_EMB_PS * 28.0 / together
    useful_h = WHOLE * interval_h
    return [f"job.useful={useful_h!r} h", *_failing(round(useful_h / 28.0), together)]


CASES: dict[str, dict[float, list[str]]] = {
    "counts": {n: _failing(count=n) for n in COUNTS},
    "together": {k: _failing(together=k) for k in TOGETHER},
    "targets": {target: _failing(target=target) for target in TARGET_PLS},
    "whole": {k: _whole_job(k) for k in TOGETHER},
}


def sensitivity(work: Work) -> Summary:
    """Run the emulation on Kaggle over failures, servers failing together, and targets."""
    cases = {(of, value): sets for of in CASES for value, sets in CASES[of].items()}
    simulated = simulate_cases(work, SCENARIO, cases)
    runs = {of: {value: simulated[of, value] for value in CASES[of]} for of in CASES}
    return Summary.of(
        "Sensitivity: failures, servers failing together, target PLS",
        "How does CPR's benefit change with the number of failures, the share of servers that "
        "fail together and the PLS that is accepted (emulation on Kaggle, 8 servers, 56 h)?",
        [
            *_over_failures(*(runs["counts"][n] for n in (FEW, MANY))),
            *(_pls(runs["together"], form, k) for k in TOGETHER for form in FORMS),
            *(_pls(runs["whole"], "cpr", k, f"{WHOLE} intervals: ") for k in TOGETHER),
        ],
        {
            title: [_cells(heading, value, one) for value, one in runs[of].items()]
            for title, heading, of in (
                ("Over the number of failures:", "failures", "counts"),
                ("Over the servers that fail together (2 failures):", "servers", "together"),
                ("Over the target PLS (2 failures of 1 server):", "target PLS", "targets"),
            )
        },
        (
            "PLS by the paper's formula is k T_save / (2 T_fail N). It is exact where the job is a "
            "whole number of intervals. At the emulation's values it is 1.25 intervals at k = 1: a "
            "failure in the last, shorter interval loses less, so that ours is lower. "
            f"The other assumption, a job of {WHOLE} intervals with the same failure rate: the "
            "formula is met (last rows).",
            "With the published, undivided interval the PLS comes out k times the target when k "
            "servers fail together; divided by k it meets the target, at more saves.",
        ),
        _chart(runs),
    )  # fmt: skip


def _over_failures(few: Simulated, many: Simulated) -> Iterator[Claim]:
    form = "cpr-undivided"
    before, after = (one.removed_percent(form) for one in (few, many))
    shrinks = Tested(
        after.ends[1] < before.ends[0], f"{after.shown('%')} against {before.shown('%')}"
    )
    yield compare("removed by CPR at 40 failures against 2", SHRINKS, shrinks, SET_UP_RECALLED)
    before_h, after_h = (one[form, "save_interval_h"].mean for one in (few, many))
    chose = "partial" if many[form, "chose_partial"].mean else "full"
    reacts = Tested(
        after_h < before_h or chose == "full",
        f"{chose} recovery, T_save {after_h:.3g} h instead of {before_h:.3g} h",
    )
    yield compare("what CPR does at 40 failures", REACTS, reacts, SET_UP_RECALLED)


def _pls(runs: Mapping[float, Simulated], form: str, together: int, job: str = "") -> Claim:
    """The PLS that the formula says: the target, or k times it where the interval is undivided."""
    value = USUAL * (together if form == "cpr-undivided" else 1)
    share = 100 * together / N_EMB_PS
    return compare(
        f"{job}PLS, {share:g} % of the servers failing, {STRATEGIES[form]}",
        about(value, "", DERIVED, text=f"{value:g} (formula)"),
        runs[together][form, "pls"],
        SET_UP_RECALLED,
    )


def _cells(heading: str, value: float, one: Simulated) -> dict[str, str]:
    cells = {heading: f"{value:g}"}
    cells |= {f"{label}, %": one.percent(name).shown() for name, label in STRATEGIES.items()}
    for form, label in FORMS.items():
        cells |= {f"{label}: T_save, h": one.interval(form)}
        cells |= {f"{label}: PLS": f"{one[form, 'pls'].mean:.3f}"}
    return cells


def _chart(runs: Mapping[str, Mapping[float, Simulated]]) -> Chart:
    shares = {100 * k / N_EMB_PS: one for k, one in runs["together"].items()}
    failing, by_count = "servers failing, %", "failures per job"
    lines = [
        series(STRATEGIES[form], shares, [one[form, "pls"] for one in shares.values()])
        for form in FORMS
    ]
    formula = tuple(USUAL * k for k in TOGETHER)
    lines.append(Series("k times the target (derived)", tuple(shares), formula, kind="paper"))
    return Chart(
        "What CPR's benefit depends on (emulation on Kaggle)",
        "Means over replications; error bars: 95 % interval of the mean.",
        (
            overheads_over("Over the number of failures in 56 h", by_count, runs["counts"],
                           STRATEGIES, x_log=True),
            overheads_over("Over the servers that fail together (2 failures)", failing, shares,
                           STRATEGIES),
            overheads_over("Over the target PLS (2 failures): what it costs", "target PLS",
                           runs["targets"], {"cpr": "CPR, 1 server failing"}, x_log=True),
            Panel("PLS, target 0.1", failing, "PLS", tuple(lines)),
        ),
    )  # fmt: skip


STUDY = Study(
    "sensitivity",
    "CPR's benefit over the number of failures, servers failing together, and the target PLS",
    sensitivity,
    (SCENARIO,),
)
