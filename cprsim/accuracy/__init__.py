"""What stale shards cost in accuracy: measured responses, their files, and predictions."""
