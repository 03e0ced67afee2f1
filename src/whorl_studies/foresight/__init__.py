"""The foresight study: policies that look ahead, controls with other actions, and what else the compute could buy.

`kind` holds what whorl runs, and `audit` what the auditor knows; neither imports the other.
"""
