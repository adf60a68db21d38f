"""What users write: the scenario's schema, reading with file and line, and back to text."""
