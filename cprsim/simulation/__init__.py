"""A job under a recovery system, simulated: `docs/model.md` and `docs/recovery.md` have the rules.

SimulatedJob    a job under a policy                                       (job.py)
Spec, Sim       the same in plain numbers; the state of one replication    (spec.py, state.py)
step            the job from one event to the next                         (step.py)
run_block       many replications of a job, compiled                       (blocks.py)
cluster         jobs on a SimPy cluster: event logs and fleets             (cluster.py)
"""
