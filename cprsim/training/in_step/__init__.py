"""How the trainers of a job stay in step, and how fast they are meanwhile.

    SyncSetting ──> load_model: closed forms      ─┐
         └────────> simulate: SimPy processes ─────┴─> Throughput
                          └─> SyncLog ──> training of replicas by it

What simulates comes with SimPy, and stands in `simulation` and `trainers` alone. The room computes
times and bytes, no weights: what a synchronisation does to a model is in
`cprsim.training.kernel.replicas`.
"""
