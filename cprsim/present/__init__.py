"""What is said of results: one document per kind, rendered for terminals, as HTML and Markdown."""
