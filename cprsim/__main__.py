"""``python -m cprsim``: the same as ``cprsim``."""

from cprsim.cli import main

main()
