"""What a job does under a recovery system, simulated: `docs/recovery.md` says it in words.

SimulatedJob    a job under a policy                                             (job.py)
numbers_of      the same in plain numbers and arrays                             (numbers.py)
transitions     what survives, which rule is taken, when the next save is due
ScopedBlock     the failures of a block of replications, with what each kills    (strikes.py)
run_block       many replications, by whichever engine takes each                (blocks.py):
compiled, or few of them interpreted                                             (fast/)
event by event by SimPy, which also writes their logs and runs fleets        (cluster.py)
"""
