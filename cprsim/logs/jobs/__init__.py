"""What the logs of jobs say: events, incidents and stretches of work, and a ledger of hours."""
