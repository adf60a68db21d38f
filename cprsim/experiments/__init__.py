"""Experiments: from a scenario to rows, by simulation, and to losses, by training.

`assemble` makes the records of a scenario; `pipeline` runs its replications; `proxy_model` and
`train_in_step` make and train the small model that a scenario names, and `accuracy` prices stale
state by it.
"""
