"""Logs: of failures (`formats`), fits to them (`fit`), and of jobs that have run (`jobs`)."""
