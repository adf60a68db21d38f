"""A small real DLRM that can be failed: it trains on clicks, saves, and loses shards.

    clicks ──> ProxyTrainer (Dlrm, optimiser) ──> metrics
                  │ rows changed, rows accessed
    schedule ──> Saver (tracker, shards) ──> rows as last saved ──> shards that failed revert to it

The kernel counts rows and samples, not hours: `schedule.of_log` turns the progress of a simulated
job into shares of the run. `playing.play` is the one loop over a schedule.
"""
