"""What a job does under a recovery system, simulated: `docs/recovery.md` says it in words.

SimulatedJob    a job under a policy                                             (job.py)
Numbers         the same in plain numbers and arrays                             (numbers.py)
transitions     what survives, which rule is taken, when the next save is due
run             one replication after the other by SimPy                         (events.py)
run_block       many replications, compiled                                      (fast.py)
"""
