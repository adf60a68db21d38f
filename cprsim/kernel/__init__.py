"""A small real DLRM that can be failed: it trains on clicks, saves, and loses shards.

    clicks ──> Trainer (Dlrm, optimiser) ──> metrics
                  │ rows changed, rows accessed
                  v
               Saver (tracker, shards) ──> SavedState ──> shards that failed revert to it

The kernel knows rows and samples, never hours: whoever replays a simulation turns its progress
into positions in the data.
"""
