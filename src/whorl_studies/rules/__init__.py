"""The rules study: which of the rules that train circuits follow a gradient, which bend, and which turn.

`kind` holds what whorl runs, and `audit` what the auditor knows; neither imports the other.
"""
