"""Files that people take for a log of failures, and what they want instead."""

from __future__ import annotations

import re

ADVICE = {  # by what their beginning holds
    r'\{(?!.*"(?:involvedObject|regarding)").*"kind":\s*"Node"[,}]|(?:NAME\s+STATUS\s+ROLES\b)': (
        "holds nodes as they are now, not when they failed: write `kubectl get events -A "
        "--field-selector involvedObject.kind=Node -o json`"
    ),
    r"(?:NAMESPACE\s+)?LAST SEEN\s+TYPE\s+REASON|apiVersion: ": (
        "holds events of Kubernetes without their instants: write them with -o json"
    ),
    r"\s*(?:JobID|Cluster|NodeName)\b[^|\n]*\n[- ]+\n": (
        "is a table of Slurm whose columns of a fixed width cut names off: print it with bars (-P)"
    ),
    r'(?=.*"alertname":).*"startsAt":': (
        "holds alerts of Alertmanager: one outage has several, and each begins late, by the `for` "
        "of its rule; query Prometheus for `up` (/api/v1/query_range)"
    ),
    r'.*"torchelastic\.worker\.status|(?:[IWE]\d{4}|\[?\d{4}-)[^\n]*torch[./]distributed': (
        "is the log of a job that torchrun ran, which names no failures of nodes: `cprsim ledger` "
        "reads it"
    ),
    r"\[\d{10}\] [A-Z ]+: ": (
        "is an archive of Nagios: make a table of it by (echo node,start,state; sed -nE "
        r"'s/^\[([0-9]+)\] HOST ALERT: ([^;]+);(DOWN|UP);HARD;.*/\2,\1,\3/p' FILE)"
    ),
    r'\{[^\n]*"__REALTIME_TIMESTAMP"|(?:\w+\[)?\[? *\d+\.\d{6}\] ': (
        "is a kernel's log as JSON, or with seconds since its start: write it with `journalctl -k "
        "-o short-iso` or `dmesg -T`"
    ),
}


def advice(text: str) -> str:
    """What to do with a file that begins so; empty where nothing speaks against reading it."""
    return next((hint for begins, hint in ADVICE.items() if re.match(begins, text, re.DOTALL)), "")
