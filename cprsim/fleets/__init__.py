"""Many jobs on one cluster: what they share, what failures cost all of them, and what it takes."""
