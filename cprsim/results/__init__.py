"""Results: metrics over replications, and the folder that keeps them.

An outcome becomes rows (one per replication); rows become metrics (means, intervals,
differences) and go into a folder (tables, summary, the manifest last) that reads back.
"""
