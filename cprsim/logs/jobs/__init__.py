"""Logs of jobs: events, incidents and periods of work, and a ledger of hours."""
