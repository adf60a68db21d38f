"""Staleness curves in files: what `cprsim measure` writes, the shipped ones, and the user's own.

A file becomes a `StalenessCurve`; which one applies to a scenario is said by its section
`accuracy`, or by the section `kernel` that a shipped curve was measured on.
"""

from __future__ import annotations

from cprsim.curves.choosing import (
    chosen_curve,
    curve_path,
    fit_curves,
    other_inputs,
    shipped,
    shipped_names,
    stand_ins,
)
from cprsim.curves.curve_file import CurveFile, read_curve, write_curve
from cprsim.curves.trained_on import kernel_block

__all__ = [
    "CurveFile",
    "chosen_curve",
    "curve_path",
    "fit_curves",
    "kernel_block",
    "other_inputs",
    "read_curve",
    "shipped",
    "shipped_names",
    "stand_ins",
    "write_curve",
]
