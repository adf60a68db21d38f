"""Rehearsal: a scenario run by real processes at small scale, beside what was predicted of it.

The runtime is `wire`, `store`, `shard`, `role`, `server`, `trainer`, `in_step`, `worker` and
`fork_server`; `nodes`, `saves` and `supervisor` run a job of such processes, and `log` makes an
event log of what it did. `setting` turns a scenario into `orders`; `calibration` and `prediction`
say beforehand what should come out; `verdict` compares that with what did; `rehearsing` does it all
and keeps a journal. docs/rehearsal.md has the protocol.
"""
