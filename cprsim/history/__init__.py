"""What the logs of real jobs say: events read from files, incidents and runs, and a ledger of hours."""
