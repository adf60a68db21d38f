"""The compiled loop of a fleet: jobs (`together`), the storage that they share, and heaps."""
