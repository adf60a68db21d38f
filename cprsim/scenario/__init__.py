"""The user's input: the scenario's schema, reading with file and line, and output as text."""
