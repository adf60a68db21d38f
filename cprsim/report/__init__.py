"""What a result says: tables for the terminal, sentences, and JSON for scripts."""
