"""What lies between a scenario and its result: for the command line and for Python alike.

Nothing here parses, prints or asks; who wants to see how far the work has come hands in a `Watch`.
"""
