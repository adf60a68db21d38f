"""``python -m cprsim``: equivalent to ``cprsim``."""

from cprsim.cli import main

main()
