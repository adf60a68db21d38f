"""Is the promise kept? The selector's intervals, held to losses measured on fresh data.

cells (scenario, limit, strategy) ──selector──> policies ──fresh failures──> histories
    ──fresh clicks and weights──> measured losses ──> outcome: below the limit, and how near
"""
