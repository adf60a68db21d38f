"""NVIDIA's Xids: what each means, and whether the node is lost to a job.

Marks: `published` is NVIDIA's word, in its Xid catalogue (docs.nvidia.com/deploy/xid-errors) or
its list of checks (docs.nvidia.com/health-validation); `recalled` was not looked up for this table.
"""

from __future__ import annotations

from typing import NamedTuple


class Xid(NamedTuple):
    """One kind of error that the driver reports."""

    meaning: str
    loses_node: bool  # the node has to be reset, rebooted or serviced before a job goes on
    mark: str  # published or recalled


XIDS: dict[int, Xid] = {
    8: Xid("GPU stopped processing", False, "published"),
    11: Xid("invalid or corrupted push buffer stream", False, "published"),
    13: Xid("graphics engine exception", False, "published"),
    31: Xid("GPU memory page fault", False, "recalled"),
    32: Xid("invalid or corrupted push buffer stream", False, "recalled"),
    38: Xid("driver firmware error", False, "recalled"),
    43: Xid("GPU stopped processing", False, "recalled"),
    45: Xid("preemptive cleanup after another error", False, "recalled"),
    46: Xid("GPU stopped processing", True, "published"),
    48: Xid("double bit ECC error", True, "published"),
    61: Xid("internal micro-controller breakpoint", True, "recalled"),
    62: Xid("internal micro-controller halt", True, "recalled"),
    63: Xid("ECC page retirement or row remapping recorded", False, "recalled"),
    64: Xid("ECC page retirement or row remapping failed", True, "recalled"),
    68: Xid("video processor exception", False, "recalled"),
    69: Xid("graphics engine class error", False, "recalled"),
    74: Xid("NVLink error", True, "recalled"),
    79: Xid("GPU has fallen off the bus", True, "recalled"),
    92: Xid("high rate of single bit ECC errors", False, "recalled"),
    94: Xid("contained ECC error", False, "recalled"),
    95: Xid("uncontained ECC error", True, "recalled"),
    109: Xid("context switch timeout", True, "recalled"),
    110: Xid("security fault", True, "recalled"),
    119: Xid("timeout of the GPU's system processor (GSP)", True, "recalled"),
    120: Xid("error of the GPU's system processor (GSP)", True, "recalled"),
    121: Xid("corrected error on the chip-to-chip link", False, "recalled"),
    136: Xid("link training failed", True, "recalled"),
    140: Xid("unrecovered ECC error", True, "recalled"),
    143: Xid("GPU initialisation error", True, "recalled"),
}
