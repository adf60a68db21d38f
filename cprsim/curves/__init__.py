"""Staleness curves in files: what `cprsim measure` writes, the shipped ones, and the user's own.

A file becomes a `StalenessCurve`; which one applies to a scenario is said by its section
`accuracy`, or by the section `kernel` that a shipped curve was measured on.
"""
