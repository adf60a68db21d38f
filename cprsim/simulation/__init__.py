"""What a job does under a recovery system, simulated: `docs/recovery.md` says it in words.

SimulatedJob    a job under a policy                                             (job.py)
numbers_of      the same in plain numbers and arrays                             (numbers.py)
transitions     what survives, which rule is taken, when the next save is due
ScopedBlock     the failures of a block of replications, with what each kills    (strikes.py)
run_block       many replications of a job, which meet the same failures         (blocks.py):
loop            compiled, or few of them interpreted                             (loop.py)
cluster         event by event by SimPy, which also writes logs and runs fleets  (cluster.py)
"""
