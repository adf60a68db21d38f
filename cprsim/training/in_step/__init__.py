"""Synchronisation of the trainers of a job, and its effect on their speed.

    SyncSetting ──> load_model: closed forms      ─┐
         └────────> simulation: SimPy processes ───┴─> SpeedPoint
                          └─> SyncLog ──> training of replicas by it

The simulation needs SimPy, which `simulation` and `trainers` alone import. The room computes times
and bytes, no weights: `cprsim.training.kernel.replicas` applies synchronisations to a model.
"""
