"""A ledger of jobs as a page: where the hours went, over time, and the worst incidents."""

from __future__ import annotations

from collections.abc import Sequence

from cprsim.history.ledger import JobLedger
from cprsim.history.summing import of_all, over_time, worst
from cprsim.plots.chart import Chart, Panel, Series
from cprsim.present.charts import chart_blocks
from cprsim.present.document import Block, Column, Document, Page, Section, Table, Words
from cprsim.report.ledger_report import TITLES, ends, inferred_lines, number

MOST_JOBS = 200


def page_of_ledger(jobs: Sequence[JobLedger], notes: Sequence[str]) -> Page:
    """Everything about the hours of some jobs."""
    total = of_all(jobs)
    useful = total.hours["useful"]
    share = useful.mean / total.wall_h if total.wall_h else 0.0
    lost = {name: one for name, one in total.hours.items() if name != "useful"}
    most = max(lost, key=lambda name: lost[name].mean)
    document = Document(
        title=f"Where the hours of {len(jobs)} job{'' if len(jobs) == 1 else 's'} went",
        question="What did failures and saves cost these jobs?",
        answer=[
            f"{100 * share:.1f} % of {number(total.wall_h)} h were useful work; most of the rest "
            f"({number(lost[most].mean)} h) was {TITLES.get(most, most)}.",
            *inferred_lines(jobs, notes),
        ],
        sections=[
            Section("All hours", [_parts(jobs)]),
            Section("Over time", _over_time(jobs)),
            Section("The worst incidents", [_incidents(jobs)]),
            Section("Job by job", [_jobs(jobs)]),
        ],
    )
    return Page(document.title, None, [document])


def _parts(jobs: Sequence[JobLedger]) -> Table:
    total = of_all(jobs)
    rows = [
        [
            TITLES.get(name, name),
            number(one.mean),
            ends(one),
            f"{100 * one.mean / total.wall_h:.2f}",
        ]
        for name, one in total.hours.items()
        if one.high > 0 and total.wall_h > 0
    ]
    return Table(
        "Hours by what they went into",
        [Column("", is_number=False), Column("hours"), Column("95 %"), Column("% of all")],
        rows,
    )


def _over_time(jobs: Sequence[JobLedger]) -> list[Block]:
    periods = over_time(jobs)
    shown = [one for one in periods if one.wall_h > 0]
    if len(shown) < 2:
        return [Words(["The logs are too short to say anything of it."])]
    begins = periods[0].from_ns
    at_d = tuple((one.from_ns - begins) / 86_400e9 for one in shown)
    ettr = Series("all jobs", at_d, tuple(one.ettr for one in shown), kind="steps")
    failures = Series("failures", at_d, tuple(float(one.n_failures) for one in shown), kind="steps")
    return chart_blocks(
        Chart(
            title="ETTR and failures over time",
            subtitle="Equal stretches of the calendar, all jobs together.",
            panels=(
                Panel("ETTR", "days since the first job began", "useful / wall hours", (ettr,)),
                Panel("Failures", "days since the first job began", "failures", (failures,)),
            ),
        )
    )


def _incidents(jobs: Sequence[JobLedger]) -> Table:
    rows = [
        [
            one.job, f"{one.at_h:.2f}", number(one.hours.mean), ends(one.hours),
            ", ".join(f"{name} {number(h)}" for name, h in one.parts_h.items()),
            " ".join(word for word in (one.node, one.cause) if word),
        ]
        for one in worst(jobs)
    ]  # fmt: skip
    columns = [
        Column("job", is_number=False), Column("after h"), Column("hours"), Column("95 %"),
        Column("of which [h]", is_number=False), Column("where", is_number=False),
    ]  # fmt: skip
    return Table("What they cost, the work done again after them included", columns, rows)


def _jobs(jobs: Sequence[JobLedger]) -> Table:
    order = sorted(jobs, key=lambda job: job.wall_h - job.useful_h.mean, reverse=True)
    rows = [
        [
            job.job, number(job.wall_h), f"{job.ettr.mean:.4f}", ends(job.ettr, 4),
            str(job.n_failures), str(job.n_saves), number(job.parts["lost"].mean),
            number(job.parts["save"].mean),
        ]
        for job in order[:MOST_JOBS]
    ]  # fmt: skip
    names = ("wall h", "ETTR", "95 %", "failures", "saves", "lost h", "save h")
    cut = "" if len(jobs) <= MOST_JOBS else f", the first {MOST_JOBS} of {len(jobs)}"
    return Table(
        f"By hours that were not useful{cut}",
        [Column("job", is_number=False), *(Column(name) for name in names)],
        rows,
    )
