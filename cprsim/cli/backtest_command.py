"""``cprsim backtest``: jobs that have run, with their own failures, under other systems."""

from __future__ import annotations

from typing import Annotated

import typer

from cprsim.cli.log_options import Logs, PageFile, SavesEvery, Seed, StateNodes, TimeUnit
from cprsim.cli.options import AsJson, Overrides
from cprsim.cli.pulse import pulse
from cprsim.cli.saying import show, write_document
from cprsim.making.options import DRAWS


def backtest(
    logs: Logs,
    recovery: Annotated[
        list[str],
        typer.Option(
            "--recovery",
            metavar="ENTRY",
            help="A strategy or system to try, e.g. gemini, 'full,gemini' or '{strategy: full, "
            "interval: 30 min}'; may be repeated.",
            show_default=False,
        ),
    ],
    nodes: StateNodes = 8,
    overrides: Overrides = [],  # noqa: B006 - typer's way of saying none
    draws: Annotated[
        int, typer.Option(help="Of what the logs do not say.", min=DRAWS["ge"], max=DRAWS["le"])
    ] = 200,
    page: PageFile = None,
    time_unit: TimeUnit = None,
    saves_every: SavesEvery = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Replay the failures of jobs under other recovery systems and intervals.

    The system that ran is replayed too. What a system needs beside the logs (cluster.link,
    cluster.shard_size or cluster.state, storage.bandwidth) --set says; so it says prices.
    """
    from cprsim.backtesting.replaying import backtest_logs
    from cprsim.history.reading import read_logs
    from cprsim.present.backtest import (
        backtest_as_json,
        backtest_blocks,
        document_of_backtest,
    )

    pulse.doing("reading the logs")
    events = read_logs(logs, time_unit)
    pulse.doing("replaying the failures")
    made = backtest_logs(
        events,
        recovery,
        saves_every=saves_every,
        n_nodes=nodes,
        overrides=overrides,
        n_draws=draws,
        seed=seed,
    )
    pages = [] if page is None else [write_document(document_of_backtest(made), page)]
    show(
        lambda: backtest_as_json(made), lambda: backtest_blocks(made), as_json=as_json, files=pages
    )
