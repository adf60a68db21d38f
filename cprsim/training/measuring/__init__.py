"""Measuring the cost of staleness: trials designed, run, stored, and fitted to a curve.

    design ──> trials of a seed ──> runs (in workers) ──> journals ──> observed ──> fit ──> curve
                                                                          └──> checks

A seed has its own clicks and initial weights, a twin, and trials that branch off it. Errors are
taken over seeds, so they apply to new data.
"""
