"""Readers of logs: each makes a frame with node, start, end and cause, or one clear error.

formats           a file for each format, and which one a log has
spec              what a user says of a log
files             bytes, lines and text of a log, unpacked (.xz, .gz, .bz2, .zst, .zip)
reading, times    cells and instants of tables
tables, slurm     tables of any program, and Slurm's
log               `Outages` of the frame
node_file         when nodes joined and left
"""
