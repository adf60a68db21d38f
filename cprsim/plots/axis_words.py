"""What the axes of a sweep are called on figures: the field's words for the keys of a scenario."""

from __future__ import annotations

from cprsim.sweeps import AxisColumn

WORDS = {
    "accuracy.max_auc_loss": "AUC that may be lost",
    "cluster.emb_ps": "embedding servers",
    "cluster.rack": "nodes of a rack",
    "cluster.spares": "spare nodes",
    "cluster.trainers": "trainers",
    "cluster.workers": "workers",
    "costs.detect": "time to detect a failure",
    "costs.load": "cost of a load",
    "costs.reschedule": "time to reschedule",
    "costs.save": "cost of a save",
    "failures.count": "failures per job",
    "failures.family": "distribution of failures",
    "failures.mtbf": "mean time between failures",
    "failures.role": "what fails",
    "failures.shape": "shape of the distribution",
    "failures.together": "nodes that fail together",
    "job.samples": "samples",
    "job.throughput": "throughput",
    "job.useful": "useful work",
    "storage.bandwidth": "bandwidth of the storage",
}
OF_STRATEGY = {"interval": "save interval", "target_pls": "target PLS"}


def words(axis: AxisColumn) -> str:
    """``cost of a save`` for ``costs.save``; a key that is not listed is called by its name."""
    section, _, rest = axis.key.partition(".")
    strategy, _, key = rest.rpartition(".")
    if section == "recovery" and key in OF_STRATEGY:
        return OF_STRATEGY[key] + (f" of {strategy}" if strategy not in ("", "*") else "")
    return WORDS.get(axis.key, axis.key)


def label(axis: AxisColumn) -> str:
    """What stands along an axis: words, and the unit in brackets."""
    return f"{words(axis)} [{axis.unit}]" if axis.unit else words(axis)
