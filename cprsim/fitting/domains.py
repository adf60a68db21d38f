"""Domains such as racks and switches: shocks that strike several of their nodes nearly at once.

Shocks that strike one node alone nobody tells from that node's own failures: fit and simulation
have them among those.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, inf, sqrt

import numpy as np
from scipy import optimize, special

from cprsim.errors import ParameterError
from cprsim.estimate import ROUNDED_Z_95, Estimate, How
from cprsim.failures.outages import NodeGroups, Outages
from cprsim.fitting.fragments import fragment
from cprsim.fitting.observation import Observation
from cprsim.fitting.trace_fit import TraceFit, fit_trace
from cprsim.foreign import one_line
from cprsim.records import Bools, Floats, Ints

FEWEST_SHOCKS = 3
SMALLEST, LARGEST = 1e-4, 1 - 1e-9  # shares of a domain's nodes that are looked at
STEP = 1e-4  # of logits, for a second derivative


@dataclass(frozen=True, slots=True)
class DomainFit:
    """Shocks of domains, as a log shows them."""

    column: str
    n_domains: int
    n_nodes_each: int  # the median
    within_h: float
    n_shocks: int
    n_struck: int  # failures that shocks account for
    by_chance: float  # groups of a domain that independent failures would make
    rate_per_h: Estimate  # of the shocks of one domain, also those that strike one node or none
    struck: Estimate  # share of its domain's nodes that a shock strikes
    share_of_failures: float
    alone: Outages  # those outages that no shock accounts for
    code: Ints  # (n_nodes,) domain of each node, -1 for none

    def mtbf_of_job_h(self, n_job: int) -> float:
        """Mean time between shocks of the domains of a job [h]."""
        rate = self.rate_per_h.mean * ceil(n_job / self.n_nodes_each)
        return 1 / rate if rate > 0 else inf

    @property
    def failures_of_shocks(self) -> float:
        """Failures of nodes that shocks make in a log as long as this one, single ones included."""
        return self.rate_per_h.mean * self.alone.window_h * self.struck.mean * len(self.code)

    def draw(self, n: int, rng: np.random.Generator) -> tuple[Ints, Floats, Ints]:
        """Replication, instant [h] and node of what shocks of two nodes or more strike in n logs.

        In no order; `(n_struck,)` each. Nodes are there all along.
        """
        window_h, share = self.alone.window_h, self.struck.mean
        found = [(np.zeros(0, np.int64), np.zeros(0), np.zeros(0, np.int64))]
        for nodes in _members(self.code):
            hit = rng.random((rng.poisson(self.rate_per_h.mean * window_h * n), len(nodes))) < share
            event, place = np.nonzero(hit & (hit.sum(axis=1, keepdims=True) > 1))
            replication, at_h = rng.integers(0, n, len(hit)), rng.random(len(hit)) * window_h
            found.append((replication[event], at_h[event], nodes[place]))
        replication, at_h, node = (np.concatenate(column) for column in zip(*found, strict=True))
        return replication, at_h, node

    def shares_in_shocks(self, log: Ints, at_h: Floats, node: Ints, n_logs: int) -> Floats:
        """Of each log's failures, those that fell with another node of the domain, (n_logs,).

        NaN for a log without failures.

        Parameters
        ----------
        log, at_h, node : (n_failures,) number of the log, instant [h] and node
        """
        in_domain = np.flatnonzero(self.code[node] >= 0)
        of = log[in_domain] * (int(self.code.max()) + 1) + self.code[node[in_domain]]
        order = np.lexsort((at_h[in_domain], of))
        in_domain = in_domain[order]
        chains = _chains(of[order], at_h[in_domain], node[in_domain], self.within_h)
        struck = in_domain[chains.n_nodes[chains.event] > 1]
        with np.errstate(invalid="ignore"):
            n_struck = np.bincount(log[struck], minlength=n_logs)
            return np.asarray(n_struck / np.bincount(log, minlength=n_logs), dtype=np.float64)


def _members(code: Ints) -> Iterator[Ints]:
    """The nodes of each domain that has two or more."""
    order = np.argsort(code, kind="stable")
    for nodes in np.split(order, np.flatnonzero(np.diff(code[order])) + 1):
        if len(nodes) > 1 and code[nodes[0]] >= 0:
            yield nodes


def fit_domains(outages: Outages, groups: NodeGroups, within_h: float = 0.0) -> DomainFit:
    """Find shocks of domains: two nodes or more of one that fail within a window, in chains.

    A shock is taken to strike each node of its domain with the same probability, so that those
    that strike fewer than two, which nobody sees, are reckoned with.

    Parameters
    ----------
    outages : the log
    groups : the domain of each node; nodes without one have no shocks
    within_h : between one failure and the next of a shock [h]

    Raises
    ------
    ParameterError
        where there are fewer than `FEWEST_SHOCKS` more than chance would make, or domains of one
        node alone.
    """
    sizes_of = np.bincount(groups.code[groups.code >= 0], minlength=len(groups.names))
    several = sizes_of[sizes_of > 1]
    if not len(several):
        raise ParameterError(f"--domain {groups.column}: no domain has two nodes of the log")
    shocks = _shocks(outages, groups.code, within_h)
    by_chance = _by_chance(outages, groups.code, sizes_of, shocks.struck, within_h)
    n = len(shocks.sizes)
    if n - by_chance < FEWEST_SHOCKS:
        raise ParameterError(
            f"--domain {groups.column}: {n} group(s) of nodes of one domain failed within "
            f"{within_h:.4g} h, where chance makes {by_chance:.3g}; {FEWEST_SHOCKS} more are "
            "needed (--together says how near in time they are)"
        )
    of_domain = sizes_of[shocks.domain]
    struck = _struck(shocks.sizes, of_domain)
    seen = float(p_seen(struck.mean, several).mean())
    watched_h = len(several) * outages.window_h * seen
    counted = Estimate.of_count(n)
    rate, low, high = (max(end - by_chance, 0.0) / watched_h for end in counted.triple)
    n_struck, n_all = int(shocks.struck.sum()), int((outages.in_window & outages.chosen).sum())
    return DomainFit(
        groups.column, len(several), int(np.median(several)), within_h, n, n_struck, by_chance,
        Estimate(rate, low, high, n, counted.how), struck, n_struck / n_all,
        outages.where(~shocks.struck), groups.code,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Shocks:
    domain: Ints  # (n_shocks,)
    sizes: Ints  # (n_shocks,) nodes that were struck
    struck: Bools  # (n_outages,)


def _shocks(outages: Outages, code: Ints, within_h: float) -> _Shocks:
    domain = code[outages.node]
    rows = np.flatnonzero((domain >= 0) & outages.in_window & outages.chosen)
    rows = rows[np.lexsort((outages.start_h[rows], domain[rows]))]
    of = domain[rows]
    chains = _chains(of, outages.start_h[rows], outages.node[rows], within_h)
    is_shock = chains.n_nodes > 1
    struck = np.zeros(outages.n_outages, dtype=bool)
    struck[rows[is_shock[chains.event]]] = True
    return _Shocks(of[chains.begins][is_shock], chains.n_nodes[is_shock], struck)


@dataclass(frozen=True, slots=True)
class _Chains:
    begins: Bools  # (n,) whether a failure is the first of its chain
    event: Ints  # (n,) number of its chain
    n_nodes: Ints  # (n_chains,) different ones


def _chains(of: Ints, at_h: Floats, node: Ints, within_h: float) -> _Chains:
    """Failures in order of their domain and time [h], each near the one before it."""
    begins = np.append(True, (np.diff(of) != 0) | (np.diff(at_h) > within_h))[: len(of)]
    event = np.cumsum(begins) - 1
    pairs = np.unique(np.stack([event, node]), axis=1)
    return _Chains(begins, event, np.bincount(pairs[0], minlength=int(begins.sum())))


def _by_chance(
    outages: Outages, code: Ints, sizes: Ints, struck: Bools, within_h: float
) -> float:  # fmt: skip
    """Groups that failures of their own would make, were they Poisson in each domain."""
    alone = code[outages.node[outages.in_window & outages.chosen & ~struck]]
    n_alone = np.bincount(alone[alone >= 0], minlength=len(sizes))
    others = n_alone * (1 - 1 / np.maximum(sizes, 1))  # of another node than the first
    return float((n_alone * -np.expm1(-others * within_h / outages.window_h)).sum())


def p_seen(share: float, n_nodes: Ints) -> Floats:
    """Probability that a shock strikes two nodes or more of a domain of so many, (n_domains,)."""
    none = (1 - share) ** n_nodes
    return np.asarray(1 - none - n_nodes * share * (1 - share) ** (n_nodes - 1), dtype=np.float64)


def _struck(sizes: Ints, n_nodes: Ints) -> Estimate:
    """Share of a domain's nodes that a shock strikes, of binomial sizes from two on."""
    total = int(n_nodes.sum())
    if (sizes == n_nodes).all():
        return Estimate(1.0, 0.025 ** (1 / total), 1.0, total, How.BINOMIAL)

    def loss(logit: float) -> float:
        share = float(np.clip(special.expit(logit), SMALLEST, LARGEST))
        each = sizes * np.log(share) + (n_nodes - sizes) * np.log1p(-share)
        return float((np.log(p_seen(share, n_nodes)) - each).sum())

    bounds = special.logit([SMALLEST, LARGEST])
    at = float(optimize.minimize_scalar(loss, bounds=tuple(bounds), method="bounded").x)
    curvature = (loss(at + STEP) + loss(at - STEP) - 2 * loss(at)) / STEP**2
    error = ROUNDED_Z_95 / sqrt(max(curvature, 1e-12))
    low, mean, high = (float(special.expit(at + by)) for by in (-error, 0.0, error))
    return Estimate(mean, low, high, total, How.LIKELIHOOD)


def domain_fragment(fitted: DomainFit, alone: TraceFit, origin: str, n_job: int) -> str:
    """The sections `failures` and `scopes`: nodes alone, and shocks of racks from a source apart.

    Raises ParameterError where nothing of nodes alone can be written.
    """
    own = fragment(alone, origin, n_job)
    rate, share = fitted.rate_per_h, fitted.struck
    between = f"{1 / rate.high:.4g} to {1 / rate.low if rate.low > 0 else inf:.4g} h"
    return "\n".join(
        [
            f"# failures of nodes alone; shocks of a {one_line(fitted.column)} have a source apart",
            own.rstrip(),
            "scopes:",
            "  - {name: node, reach: node, share: 1.0}  # all of the section failures",
            f"  # {fitted.n_shocks} shocks of {fitted.n_domains} domains; one of each every "
            f"{1 / rate.mean:.4g} h, 95 %: {between}",
            f"  # a shock strikes {share.mean:.1%} of its nodes (95 %: {share.low:.1%} to "
            f"{share.high:.1%}), here all of them",
            "  - name: rack",
            "    reach: rack",
            "    failures:",
            "      kind: job",
            f"      nodes: {n_job}  # of the job with this rate",
            "      family: exponential",
            f"      mtbf: {fitted.mtbf_of_job_h(n_job):.6g} h",
            "      role: any",
            "      clock: wall",
            f"# under cluster: rack: {fitted.n_nodes_each}",
            "",
        ]
    )


@dataclass(frozen=True, slots=True)
class ByDomain:
    """The shocks of a log's domains, and the fragment with a source for them."""

    fitted: DomainFit
    fragment: str | None
    why_not: str
    alone: TraceFit | None  # of nodes alone; None where nothing of them can be fitted

    @classmethod
    def of(cls, fitted: DomainFit, origin: str, n_job: int, observed: Observation) -> ByDomain:
        """Write the fragment, or why there is none."""
        alone = None
        try:
            alone = fit_trace(fitted.alone, n_bootstrap=0, observed=observed)
            return cls(fitted, domain_fragment(fitted, alone, origin, n_job), "", alone)
        except ParameterError as error:
            return cls(fitted, None, str(error), alone)

    @property
    def text(self) -> str:
        """The fragment, or why there is none."""
        return self.fragment or f"# no fragment: {self.why_not}\n"
