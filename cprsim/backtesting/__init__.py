"""Jobs that have run: their failures under other systems, and scenarios from their logs."""
