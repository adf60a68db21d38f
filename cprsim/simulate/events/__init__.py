"""The SimPy engine: one replication of a job, event by event, and its log.

replication    the job: it works, is stalled by saves, blocked by recoveries    (run)
alarms         instants in wall time, in the order in which they are taken
spares         nodes in stock, in use and in repair
sharing        loads that share a link
event_log      what happened, as the log that all else reads
"""

from __future__ import annotations
