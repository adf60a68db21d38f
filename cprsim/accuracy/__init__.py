"""Accuracy cost of stale shards: measured responses, their files, and predictions."""
