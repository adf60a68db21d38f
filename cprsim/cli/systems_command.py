"""``cprsim systems``: the recovery systems that there are, and what one of them does."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Annotated

import typer

from cprsim.cli.options import AsJson, Overrides
from cprsim.cli.saying import WIDTH, say, say_json

WIDEST = 100  # characters of a line of prose


def systems(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help="One of them: explain it.",
            show_default=False,
        ),
    ] = None,
    job: Annotated[
        Path | None,
        typer.Option(
            metavar="SCENARIO",
            help="Show what each is for the job of a scenario, not for a made-up one.",
            show_default=False,
        ),
    ] = None,
    overrides: Overrides = [],  # noqa: B006
    as_json: AsJson = False,
) -> None:
    """List the recovery systems: what each does, needs and survives; or explain one.

    What a system needs and what a failure takes the job back to follow from its records.
    """
    from cprsim.cli.terminal import Terminal
    from cprsim.present.systems_listing import (
        elsewhere,
        entry_of,
        listing,
        made_up_job,
        plain_entry,
        plain_policy,
        scenario_job,
    )
    from cprsim.present.systems_words import explained, print_listing
    from cprsim.scenario import load_scenario

    if job is None and overrides:
        raise typer.BadParameter("changes a scenario: name one with --job", param_hint="--set")
    asked = made_up_job() if job is None else scenario_job(load_scenario(job, overrides))
    if name is None:
        entries = listing(asked)
        if as_json:
            say_json({"job": asked.words, "systems": [plain_entry(one) for one in entries]})
        else:
            print_listing(Terminal(), entries, asked)
        return
    if words := elsewhere(name):
        say(textwrap.fill(words, WIDTH))
        return
    entry = entry_of(name, asked)
    if as_json:
        policy = entry.policy and plain_policy(entry.policy)
        say_json({"job": asked.words, **plain_entry(entry), "policy": policy})
        return
    width = min(WIDEST, Terminal().width)
    for line in explained(entry, asked):
        indent = " " * (len(line) - len(line.lstrip()) + 2)
        say(textwrap.fill(line, width, subsequent_indent=indent, break_on_hyphens=False))
