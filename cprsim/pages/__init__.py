"""Documents and figures: records, their renderers for terminal, HTML and Markdown, charts."""
