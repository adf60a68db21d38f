"""What ``import cprsim`` gives: the questions of the command line as functions, answers as objects.

A function does what the command of its name does, by the same code, and prints nothing. Each has a
file; `cprsim` itself finds them when they are first asked for.
"""
