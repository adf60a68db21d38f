"""``python -m cprsim.cli``: the same as ``cprsim``."""

from cprsim.cli import main

main()
