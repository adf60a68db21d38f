"""Logs of failures, saves and loads to distributions: how likely, how sure, and as a fragment."""
