"""Rehearsal: a scenario run by real processes at small scale, compared with its prediction.

The runtime is `wire`, `store`, `role`, `server`, `trainer`, `in_step`, `worker` and
`fork_server`; `nodes`, `saves` and `supervisor` run a job of such processes, and `log` makes its
event log. `setting` turns a scenario into `orders`; `calibration` and `prediction` give expected
results beforehand; `verdict` compares them with the measured ones; `rehearsing` does it all and
keeps a journal. docs/rehearsal.md has the protocol.
"""
