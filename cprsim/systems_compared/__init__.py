"""Which recovery system for a job: all that can run it, each at its best, on the same failures.

scenario ──> lineup: who can run this job ──> each at its best interval ──> one run of all
                └── who can't, and why                                        └──> standings
"""
