"""The budgets study: what rotation can buy under a bound on gain.

`kind` holds what whorl runs, and `audit` what the auditor knows; neither imports the other.
"""
