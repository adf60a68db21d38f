"""A small real DLRM that can be failed: it trains on clicks, saves, and loses shards.

    clicks ──> Trainer (Dlrm, optimiser) ──> metrics
                  │ rows changed, rows accessed
                  v
               Saver (tracker, shards) ──> SavedState ──> shards that failed revert to it

The kernel counts rows and samples, not hours: `replay` turns the progress of a simulated job into
positions in the data.
"""
