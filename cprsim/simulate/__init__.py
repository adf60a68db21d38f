"""What a job does under a recovery system, simulated: `docs/recovery.md` says it in words.

SimulatedJob    a job under a policy                                             (job.py)
numbers_of      the same in plain numbers and arrays                             (numbers.py)
transitions     what survives, which rule is taken, when the next save is due
ScopedBlock     the failures of a block of replications, with what each kills    (strikes.py)
run_block       many replications, by whichever engine takes each                (course.py):
many abreast in the common case (terms.py, steady.py), one after the other by the compiled loop
(fast.py), or event by event by SimPy (events.py, with alarms.py, spares.py, sharing.py)
event_log       what SimPy says of one, as the log that all else reads           (log.py)
"""
