"""Figures of a result: stacked overheads and a timeline. The only room with matplotlib."""
