"""Measuring what staleness costs: trials designed, run, kept, and fitted to a curve.

    design ──> trials of a seed ──> runs (in workers) ──> journals ──> observed ──> fit ──> curve
                                                                          └──> checks

A seed is one world: clicks and initial weights of its own, a twin, and trials that branch off it.
Errors are taken over seeds, so they speak for new data.
"""
