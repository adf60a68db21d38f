"""The recovery systems: each a row of options and a mechanism that makes a `Policy`."""
