"""A log without the names of its nodes and its dates, that gives the same fit."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cprsim.failures.outages import Outages


def anonymous_rows(outages: Outages, seed: int = 0) -> Iterator[str]:
    """The lines of a tidy CSV: nodes numbered in random order, causes by number, hours from 0.

    Ends that the log does not say stay empty; where it says none at all, there is no such column.
    """
    number = np.random.default_rng(seed).permutation(outages.n_nodes)
    has_ends = bool((outages.ended & ~outages.guessed).any())
    yield "node,start,end,cause" if has_ends else "node,start,cause"
    width = len(str(outages.n_nodes))
    said = outages.ended & ~outages.guessed
    for node, start_h, end_h, is_said, cause in zip(
        outages.node.tolist(), outages.start_h.tolist(), outages.end_h.tolist(), said.tolist(),
        outages.cause_code.tolist(), strict=True,
    ):  # fmt: skip
        cells = [f"n{number[node]:0{width}d}", repr(start_h)]
        cells += [repr(end_h) if is_said else ""] if has_ends else []
        yield ",".join([*cells, f"c{cause}" if outages.cause_names[cause] else ""])


def how_to_fit(outages: Outages) -> str:
    """The options with which an anonymous log gives the fit of this one."""
    inferred_h = max(
        float(outages.start_h.max()), float(outages.end_h[outages.ended].max(initial=-np.inf))
    )
    from_given, to_given = outages.window_given
    options = [f"--time-unit h --nodes {outages.n_nodes}"]
    if from_given or outages.start_h.min() != 0:
        options.append("--from 0")
    if to_given or inferred_h != outages.window_h:
        options.append(f"--to {outages.window_h!r}")
    return " ".join(options)
