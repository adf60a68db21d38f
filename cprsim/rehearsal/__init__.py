"""Rehearsal: a scenario on real processes at small scale, beside what is predicted of it.

`messages`, `hub`, `store`, `shard` and `server`, `trainer`, `worker`, `nursery` are the runtime;
`nodes` and `supervisor` run a job of them, `log` makes an event log of what it did. `setting` takes
a scenario to orders, `calibration` and `prediction` say beforehand what should come out, `verdict`
sets that beside what did, `rehearsing` does it all and keeps a journal. docs/rehearsal.md has the
protocol.
"""
