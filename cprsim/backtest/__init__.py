"""Jobs that have run, simulated: their own failures under other systems, and scenarios from logs."""
